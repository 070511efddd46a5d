"""A simple training loop, without checkpoints, for networks that train for a minute or two.

Shapes: B images, N of the set, D numbers of a code.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from dcdc.augment import to_float
from dcdc.data.store import Store, epoch_batches
from dcdc.engine.captured_step import CudaCapture, Graph, ignoring_streams, not_captured
from dcdc.engine.observer import Observer
from dcdc.engine.optimiser import Adam, Optimiser, learning_rate_factor
from dcdc.engine.terms import EpochTerms
from dcdc.runtime.seeding import derive_generator, derive_seed

Terms = dict[str, Tensor]
_WARM_UPS = 3
"""Steps before one is recorded: algorithms are found, and the optimiser's state is made."""


class Batch(NamedTuple):
    images: Tensor
    """B x C x H x W, in [0, 1]; of feature vectors, B x D."""
    indices: Tensor
    """B: their places in the set."""
    draws: torch.Generator
    """For all that is random in a step."""


SimpleStep = Callable[[Batch], Terms]
"""Trains on a batch and tells its losses, of which one is called `loss`."""


@dataclass(frozen=True)
class SimplePhase:
    step: SimpleStep
    epochs: int
    before_epoch: Callable[[int], None] = lambda _: None
    """Told the epoch's number in the phase, from 1."""
    may_be_captured: bool = False
    """As a CUDA graph: a step never waits for the device, what it reads keeps its place from the
    first epoch's beginning on, and no number on the host changes but a DescendingStep's rate."""


def epochs_for(n_steps: int, n_images: int, batch_size: int) -> int:
    """As many as it takes for about `n_steps` steps."""
    return max(1, round(n_steps / (n_images // batch_size)))


Read = Callable[[Tensor], Iterator[Tensor]]
"""The images of each of an epoch's batches of indices, steps x B, on the CPU."""


def from_store(store: Store) -> Read:
    def read(batches: Tensor) -> Iterator[Tensor]:
        store.expect(batches)
        return (to_float(store.batch(indices)) for indices in batches)

    return read


def train_simple(
    phases: Sequence[SimplePhase],
    n_images: int,
    read: Read,
    *,
    batch_size: int,
    seed: int,
    device: torch.device,
    observer: Observer,
) -> list[dict[str, Any]]:
    """A line per epoch. Orders and draws follow from the seed; nothing is written."""
    draws = torch.Generator(device=device)
    epochs = sum(phase.epochs for phase in phases)
    steps = n_images // batch_size
    observer.on_start(epoch=0, epochs=epochs, steps_left=epochs * steps)
    history: list[dict[str, Any]] = []
    for phase in phases:
        step = phase.step
        recorder = recorder_on(device) if phase.may_be_captured else None
        if recorder is not None:
            step = CapturedSimpleStep(step, draws, recorder, observer.warn)
        for number in range(1, phase.epochs + 1):
            started = time.perf_counter()
            phase.before_epoch(number)
            epoch = len(history) + 1
            terms = EpochTerms()
            order = derive_generator(seed, "order", epoch)
            batches = epoch_batches(n_images, batch_size, order)
            draws.manual_seed(derive_seed(seed, "draws", epoch))
            for images, indices in zip(read(batches), batches.to(device), strict=True):
                found = step(Batch(images, indices, draws))
                terms.add(found)
                observer.on_step(found, batch_size)
            terms.require_finite(epoch)
            seconds = round(time.perf_counter() - started, 3)
            history.append({"epoch": epoch, "seconds": seconds} | terms.means())
            observer.on_epoch(history[-1])
    return history


def adam_step(
    loss_of: Callable[[Batch], Terms],
    parameters: Sequence[nn.Parameter],
    rate: float,
    decay_steps: int | None = None,
) -> SimpleStep:
    """By Adam; the rate decays to 0 over `decay_steps`, as a cosine."""
    on_gpu = parameters[0].is_cuda
    optimiser = Adam(parameters, rate_on(parameters[0].device, rate), fused=on_gpu)

    def factor(n_done: int) -> float:
        return 1.0 if decay_steps is None else learning_rate_factor("cosine", n_done, decay_steps)

    return DescendingStep(loss_of, optimiser, lambda n_done: rate * factor(n_done))


def rate_on(device: torch.device, rate: float) -> float | Tensor:
    """A learning rate where a captured step reads it: on a GPU, a tensor there."""
    return torch.tensor(rate, device=device) if device.type == "cuda" else rate


class DescendingStep:
    """Descends the loss called `loss`, at the rate that follows from the number of steps done."""

    def __init__(
        self,
        loss_of: Callable[[Batch], Terms],
        optimiser: Optimiser,
        rate_at: Callable[[int], float],
    ) -> None:
        self.loss_of, self.optimiser, self.rate_at = loss_of, optimiser, rate_at
        self.n_done = 0
        self._rate: float | None = None

    def __call__(self, batch: Batch) -> Terms:
        self.set_rate()
        return self.train_on(batch)

    def set_rate(self) -> None:
        rate = self.rate_at(self.n_done)
        self.n_done += 1
        if not isinstance(self.optimiser.lr, Tensor):
            self.optimiser.lr = rate
        elif rate != self._rate:
            self.optimiser.lr.fill_(rate)
        self._rate = rate

    def train_on(self, batch: Batch) -> Terms:
        self.optimiser.zero_grad()
        terms = self.loss_of(batch)
        torch.autograd.backward(terms["loss"])
        self.optimiser.step()
        return {name: term.detach() for name, term in terms.items()}


class Recorder(Protocol):
    """CudaCapture, or what stands in for it."""

    def aside(self, function: Callable[[], object]) -> None: ...

    def record(self, function: Callable[[], object], generator: torch.Generator) -> Graph: ...


def recorder_on(device: torch.device) -> Recorder | None:
    """A new one, with memory of its own, for each phase."""
    return CudaCapture() if device.type == "cuda" else None


class CapturedSimpleStep:
    """A simple step as a CUDA graph. Its first steps run as they are and are what warms it up, then
    one is recorded, and all others are that one again, on what lies in the same places."""

    def __init__(
        self,
        step: SimpleStep,
        draws: torch.Generator,
        recorder: Recorder,
        warn: Callable[[str], None],
    ) -> None:
        self._set_rate: Callable[[], None] = lambda: None
        self._step = step
        if isinstance(step, DescendingStep):
            self._set_rate, self._step = step.set_rate, step.train_on
        self._draws, self._recorder, self._warn = draws, recorder, warn
        self._batch: Batch | None = None
        self._n_before = _WARM_UPS
        self._graph: Graph | None = None
        self._may_be_recorded = True
        self._terms: Terms = {}

    def __call__(self, batch: Batch) -> Terms:
        """The terms are the graph's own: the next step overwrites them."""
        self._set_rate()
        own = self._taken(batch)
        if self._graph is None and self._may_be_recorded and not self._n_before:
            self._record(own)
        if self._graph is not None:
            self._graph.replay()
            return self._terms
        if not self._may_be_recorded:
            return self._step(own)
        self._n_before -= 1
        with ignoring_streams():
            self._recorder.aside(lambda: self._keep_terms(own))
        return self._terms

    def _taken(self, batch: Batch) -> Batch:
        if self._batch is None:
            places = (torch.empty_like(batch.images), torch.empty_like(batch.indices))
            self._batch = Batch(*places, self._draws)
        assert batch.draws is self._draws
        self._batch.images.copy_(batch.images, non_blocking=True)
        self._batch.indices.copy_(batch.indices, non_blocking=True)
        return self._batch

    def _keep_terms(self, batch: Batch) -> None:
        self._terms = self._step(batch)

    def _record(self, own: Batch) -> None:
        try:
            with ignoring_streams():
                self._graph = self._recorder.record(lambda: self._keep_terms(own), self._draws)
        except RuntimeError as error:  # torch's own, of whatever cannot be captured
            self._may_be_recorded = False
            self._warn(not_captured(error))


@torch.no_grad()
def codes_of(
    network: nn.Module, encode: Callable[[Tensor], Tensor], store: Store, chunk: int = 1024
) -> Tensor:
    """N x D, in the order of the images, by the norms' trained statistics."""
    was_training = network.training
    network.eval()
    try:
        return torch.cat([encode(to_float(images)).float() for images in store.in_chunks(chunk)])
    finally:
        network.train(was_training)
