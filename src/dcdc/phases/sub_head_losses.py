"""The losses of several sub-heads at once.

Each is small, and there may be many: on a CPU a step would spend its time between the operations.

Shapes: H sub-heads, B images, r perturbed copies of each, K clusters.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dcdc.losses import DcdcLoss, LossFunction

MOST_AT_ONCE = 256 * 32
"""B x K of one sub-head: more are as fast one after the other."""
Pair = tuple[Tensor, ...]
"""Assignments of original copies, B x K, and of perturbed ones, rB x K."""


class SubHeadLosses:
    """A loss of each sub-head; what cannot be computed for all at once is one after the other."""

    def __init__(self, loss: LossFunction, *, at_once: bool) -> None:
        self._loss = loss
        self._of_all: Callable[..., DcdcLoss] | None = torch.vmap(loss) if at_once else None

    def __call__(self, pairs: Sequence[Pair]) -> list[DcdcLoss]:
        first = pairs[0][0]
        few = first.numel() <= MOST_AT_ONCE
        if self._of_all is None or len(pairs) == 1 or not few or first.device.type != "cpu":
            return [self._loss(*pair) for pair in pairs]
        originals, perturbed = (torch.stack(part) for part in zip(*pairs, strict=True))
        try:
            losses = self._of_all(originals, perturbed)
        except RuntimeError:  # a loss of somebody's own, whose path depends on values
            self._of_all = None
            return self(pairs)
        terms = {name: term.unbind() for name, term in losses.terms.items()}
        return [
            DcdcLoss(total, {name: each[number] for name, each in terms.items()})
            for number, total in enumerate(losses.total.unbind())
        ]
