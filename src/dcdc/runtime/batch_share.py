"""One process's share of a batch: its rows, and everyone's rows gathered with gradient.

Shapes: B images of the whole batch, b of the share, c copies of each image (all first copies, then
all second ones, ...), K numbers of a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dcdc.errors import InputError
from dcdc.runtime.processes import Processes


@dataclass(frozen=True)
class BatchShare:
    processes: Processes
    n_images: int
    """B"""

    def __post_init__(self) -> None:
        if self.n_images < self.processes.size:
            raise InputError(
                f"a batch of {self.n_images} images cannot be shared by {self.processes.size} "
                "processes: use a larger batch or fewer processes"
            )

    @property
    def own(self) -> slice:
        return self.processes.share(self.n_images)

    @property
    def n_own(self) -> int:
        return len(range(self.n_images)[self.own])

    def of(self, batches: Tensor) -> Tensor:
        """steps x cb from steps x cB."""
        return batches.view(len(batches), -1, self.n_images)[..., self.own].flatten(1)

    def stand_in(self, images: Tensor) -> Tensor:
        """As the whole batch in shape alone: draws are made for all images everywhere."""
        n_copies = len(images) // self.n_own
        return images[:1].expand(n_copies * self.n_images, *images.shape[1:])

    def gather(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """cB x K of each cb x K, in the whole batch's order; one exchange for all parts.

        Every process then computes the whole loss, so what comes back for its own rows is their
        whole gradient, and nothing is exchanged on the way back.
        """
        counts = [len(part) // self.n_own for part in parts]
        copies = torch.cat([_by_image(p, n) for p, n in zip(parts, counts, strict=True)], dim=1)
        gathered: Tensor = _Gather.apply(copies, self)  # type: ignore[no-untyped-call]
        return tuple(_by_copy(part) for part in torch.split(gathered, counts, dim=1))


def _by_image(part: Tensor, n_copies: int) -> Tensor:
    """b x c x K"""
    return part.reshape(n_copies, -1, *part.shape[1:]).transpose(0, 1)


def _by_copy(part: Tensor) -> Tensor:
    return part.transpose(0, 1).flatten(0, 1)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, share: BatchShare) -> Tensor:
        ctx.own = share.own
        return share.processes.all_gather_shares(own, share.n_images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[ctx.own], None


def sum_gradients(gradients: Sequence[Tensor], processes: Processes) -> None:
    """In place, over all processes: one exchange for each type of number."""
    by_type: dict[torch.dtype, list[Tensor]] = {}
    for gradient in gradients:
        by_type.setdefault(gradient.dtype, []).append(gradient)
    for some in by_type.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in some])
        processes.all_reduce_sum(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in some])
        for gradient, part in zip(some, parts, strict=True):
            gradient.copy_(part.view(gradient.shape))
