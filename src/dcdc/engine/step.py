"""One optimiser step: indices in, loss terms out.

Shapes: B images, r perturbed copies of each, K clusters of a head.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

from dcdc.augment import OriginalCopy, PerturbedCopy, to_float
from dcdc.data.store import Store
from dcdc.losses import DcdcLoss
from dcdc.networks import ClusteringNetwork

LossFunction = Callable[[Tensor, Tensor], DcdcLoss]


class Step(Protocol):
    """What the trainer needs of a step; a captured step has the same face."""

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]: ...


class EagerStep:
    """Original and perturbed copies go through the network in two passes.

    Two passes keep their batch-norm statistics apart, as the paper's authors have it.
    """

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
    ) -> None:
        self.network = network
        self.optimiser = optimiser
        self.store = store
        self.original_copy = original_copy
        self.perturbed_copy = perturbed_copy
        self.loss = loss
        self.generator = generator
        self.autocast = autocast

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """Trains `heads` on one batch; the loss terms, `head/term`, stay on the device."""
        images = to_float(self.store.batch(indices))
        original = self.original_copy(images, self.generator)
        perturbed = self.perturbed_copy(images, self.generator)
        with self.autocast():
            assign = self.network(original, heads).assign
            assign_perturbed = self.network(perturbed, heads).assign
        losses = {head: self.loss(assign[head], assign_perturbed[head]) for head in heads}
        total = torch.stack([loss.total for loss in losses.values()]).sum()
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(total)
        self.optimiser.step()
        terms = {"loss": total.detach()}
        for head, loss in losses.items():
            terms |= {f"{head}/{name}": term.detach() for name, term in loss.terms.items()}
        return terms
