"""A simple training loop, without checkpoints, for networks that train for a minute or two.

Shapes: B images, N of the set, D numbers of a code.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dcdc.augment import to_float
from dcdc.data.store import Store, epoch_batches
from dcdc.engine.observer import Observer
from dcdc.engine.optimiser import Adam, Optimiser, learning_rate_factor
from dcdc.engine.terms import EpochTerms
from dcdc.runtime.seeding import derive_generator

Terms = dict[str, Tensor]


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
    epochs = sum(phase.epochs for phase in phases)
    steps = n_images // batch_size
    observer.on_start(epoch=0, epochs=epochs, steps_left=epochs * steps)
    history: list[dict[str, Any]] = []
    for phase in phases:
        for number in range(1, phase.epochs + 1):
            started = time.perf_counter()
            phase.before_epoch(number)
            epoch = len(history) + 1
            terms = EpochTerms()
            order = derive_generator(seed, "order", epoch)
            batches = epoch_batches(n_images, batch_size, order)
            draws = derive_generator(seed, "draws", epoch, device=device)
            for images, indices in zip(read(batches), batches.to(device), strict=True):
                found = phase.step(Batch(images, indices, draws))
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
    optimiser = Adam(parameters, rate, fused=parameters[0].is_cuda)

    def factor(n_done: int) -> float:
        return 1.0 if decay_steps is None else learning_rate_factor("cosine", n_done, decay_steps)

    return descending_step(loss_of, optimiser, lambda n_done: rate * factor(n_done))


def descending_step(
    loss_of: Callable[[Batch], Terms], optimiser: Optimiser, rate_at: Callable[[int], float]
) -> SimpleStep:
    """Descends the loss called `loss`, at the rate that follows from the number of steps done."""
    steps = count()

    def step(batch: Batch) -> Terms:
        optimiser.lr = rate_at(next(steps))
        optimiser.zero_grad()
        terms = loss_of(batch)
        torch.autograd.backward(terms["loss"])
        optimiser.step()
        return {name: term.detach() for name, term in terms.items()}

    return step


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
