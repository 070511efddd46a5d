"""One optimiser step: indices in, loss terms out.

Shapes: B images, r perturbed copies of each, K clusters of a head.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.augment.pipeline import OriginalDraw, PerturbedDraw
from dcdc.data.store import Store
from dcdc.losses import DcdcLoss
from dcdc.networks import Aside, ClusteringNetwork, copy_groups, weight_gradients_aside

LossFunction = Callable[[Tensor, Tensor], DcdcLoss]
Passes = Callable[[ClusteringNetwork, Tensor, Tensor, Sequence[str]], "tuple[Assign, Assign]"]
Assign = dict[str, Tensor]
"""By head: images x K."""
Function = Callable[..., Any]


class Step(Protocol):
    """What the trainer needs of a step; a captured step has the same face."""

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]: ...


def two_passes(
    network: ClusteringNetwork, original: Tensor, perturbed: Tensor, heads: Sequence[str]
) -> tuple[Assign, Assign]:
    """One after the other, as the paper's authors have it: batch-norm statistics stay apart."""
    return network(original, heads).assign, network(perturbed, heads).assign


def one_pass(
    network: ClusteringNetwork, original: Tensor, perturbed: Tensor, heads: Sequence[str]
) -> tuple[Assign, Assign]:
    """The same meaning in one batch, with statistics per copy group."""
    sizes = (len(original), len(perturbed))
    images = torch.cat([original, perturbed]).contiguous(memory_format=torch.channels_last)
    with copy_groups(network, sizes):
        assign = network(images, heads).assign
    parts = {head: torch.split(rows, list(sizes)) for head, rows in assign.items()}
    return (
        {head: part[0] for head, part in parts.items()},
        {head: part[1] for head, part in parts.items()},
    )


def as_it_is(function: Function) -> Function:
    return function


class EagerStep:
    def __init__(
        self,
        *,
        network: ClusteringNetwork,
        optimiser: torch.optim.Optimizer,
        store: Store,
        original_copy: OriginalCopy,
        perturbed_copy: PerturbedCopy,
        loss: LossFunction,
        generator: torch.Generator,
        autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
        passes: Passes = two_passes,
        compiled: Callable[[Function], Function] = as_it_is,
        aside: Aside | None = None,
    ) -> None:
        """`compiled` may hand back a faster twin of the pure parts: perturbations and loss.

        `aside` is where the convolutions' weight gradients are computed meanwhile.
        """
        self.network = network
        self.optimiser = optimiser
        self.store = store
        self.original_copy = original_copy
        self.perturbed_copy = perturbed_copy
        self.generator = generator
        self.autocast = autocast
        self.passes = passes
        self.aside = aside
        self.loss = compiled(loss)
        self._apply_copies = compiled(self._apply_copies_eagerly)

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """Trains `heads` on one batch; the loss terms, `head/term`, stay on the device."""
        return self.train_on(self.store.batch(indices), heads)

    def train_on(self, images: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """`images` are B x C x H x W, uint8."""
        draws = (
            self.original_copy.draw(images, self.generator),
            self.perturbed_copy.draw(images, self.generator),
        )
        original, perturbed = self._apply_copies(images, *draws)
        self.optimiser.zero_grad(set_to_none=True)
        with self._gradients_aside():
            with self.autocast():
                assign, assign_perturbed = self.passes(self.network, original, perturbed, heads)
            losses = {head: self.loss(assign[head], assign_perturbed[head]) for head in heads}
            total = torch.stack([loss.total for loss in losses.values()]).sum()
            torch.autograd.backward(total)
        self.optimiser.step()
        terms = {"loss": total.detach()}
        for head, loss in losses.items():
            terms |= {f"{head}/{name}": term.detach() for name, term in loss.terms.items()}
        return terms

    def _gradients_aside(self) -> AbstractContextManager[object]:
        if self.aside is None:
            return nullcontext()
        return weight_gradients_aside(self.network, self.aside)

    def _apply_copies_eagerly(
        self, images: Tensor, draw: OriginalDraw, draw_perturbed: PerturbedDraw
    ) -> tuple[Tensor, Tensor]:
        return (
            self.original_copy.apply(images, draw),
            self.perturbed_copy.apply(images, draw_perturbed),
        )
