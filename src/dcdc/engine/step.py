"""One optimiser step: indices in, loss terms out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor

from dcdc.data.store import Store
from dcdc.engine.objectives import Objective
from dcdc.engine.optimiser import Optimiser, gradients_of
from dcdc.networks import ClusteringNetwork, WeightGradientStream, weight_gradients_on
from dcdc.runtime.batch_share import BatchShare, sum_gradients


class Step(Protocol):
    """What the trainer needs of a step; a captured step has the same signature."""

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]: ...


class EagerStep:
    def __init__(
        self,
        *,
        network: ClusteringNetwork,
        optimiser: Optimiser,
        store: Store,
        objective: Objective,
        generator: torch.Generator,
        gradient_stream: WeightGradientStream | None = None,
        share: BatchShare | None = None,
        state: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> None:
        """`gradient_stream` is where the convolutions' weight gradients are computed meanwhile;
        `share` is what this process takes of a batch, where several train together; `state` is
        what the running phase keeps."""
        self.network = network
        self.optimiser = optimiser
        self.store = store
        self.objective = objective
        self.generator = generator
        self.gradient_stream = gradient_stream
        self.share = share
        self.state = state

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """Trains `heads` on one batch; the loss terms, `head/term`, stay on the device."""
        self.objective.see(indices)
        return self.train_on(self.store.batch(indices), heads)

    def train_on(self, images: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """`images` are B x C x H x W, uint8: the share's, where there is one."""
        copies = self.objective.copies(images, self._draw(images))
        self.optimiser.zero_grad()
        with self._on_gradient_stream():
            total, terms = self.objective.loss(self.network, copies, heads)
            torch.autograd.backward(total)
        if self.share is not None:
            sum_gradients(gradients_of(self.optimiser.parameters), self.share.processes)
        self.optimiser.step()
        return {"loss": total.detach()} | {name: term.detach() for name, term in terms.items()}

    def _draw(self, images: Tensor) -> Any:
        """For all images of the batch: so all processes draw the same."""
        if self.share is None:
            return self.objective.draw(images, self.generator)
        whole = self.objective.draw(self.share.stand_in(images), self.generator)
        return self.objective.part(whole, self.share.own)

    def _on_gradient_stream(self) -> AbstractContextManager[object]:
        if self.gradient_stream is None:
            return nullcontext()
        aside = self.gradient_stream.stream is not None and self.share is None
        update = self.optimiser.step_early if aside else None
        return weight_gradients_on(self.network, self.gradient_stream, update)
