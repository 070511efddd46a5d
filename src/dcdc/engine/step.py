"""One optimiser step: indices in, loss terms out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

from dcdc.data.store import Store
from dcdc.engine.objectives import Objective
from dcdc.networks import Aside, ClusteringNetwork, weight_gradients_aside


class Step(Protocol):
    """What the trainer needs of a step; a captured step has the same face."""

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]: ...


class EagerStep:
    def __init__(
        self,
        *,
        network: ClusteringNetwork,
        optimiser: torch.optim.Optimizer,
        store: Store,
        objective: Objective,
        generator: torch.Generator,
        aside: Aside | None = None,
    ) -> None:
        """`aside` is where the convolutions' weight gradients are computed meanwhile."""
        self.network = network
        self.optimiser = optimiser
        self.store = store
        self.objective = objective
        self.generator = generator
        self.aside = aside

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """Trains `heads` on one batch; the loss terms, `head/term`, stay on the device."""
        return self.train_on(self.store.batch(indices), heads)

    def train_on(self, images: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """`images` are B x C x H x W, uint8."""
        copies = self.objective.copies(images, self.objective.draw(images, self.generator))
        self.optimiser.zero_grad(set_to_none=True)
        with self._gradients_aside():
            total, terms = self.objective.loss(self.network, copies, heads)
            torch.autograd.backward(total)
        self.optimiser.step()
        return {"loss": total.detach()} | {name: term.detach() for name, term in terms.items()}

    def _gradients_aside(self) -> AbstractContextManager[object]:
        if self.aside is None:
            return nullcontext()
        return weight_gradients_aside(self.network, self.aside)
