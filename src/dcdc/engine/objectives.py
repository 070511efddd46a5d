"""What a step minimises: which copies it draws, what the network makes of them, the loss.

Shapes: B images, r perturbed copies of each, K clusters of a head, D numbers of a projection.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.augment.pipeline import OriginalDraw, PerturbedDraw
from dcdc.losses import DcdcLoss, instance_loss, prediction_loss, self_label_loss
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork, copy_groups

Autocast = Callable[[], AbstractContextManager[object]]
LossFunction = Callable[[Tensor, Tensor], DcdcLoss]
Assign = dict[str, Tensor]
"""By head: images x K."""
Passes = Callable[[ClusteringNetwork, Tensor, Tensor, Sequence[str]], tuple[Assign, Assign]]
Function = Callable[..., Any]
Terms = dict[str, Tensor]
Copy = OriginalCopy | PerturbedCopy
Gather = Callable[..., tuple[Tensor, ...]]
"""The rows of this process's share of a batch, a copy after the other, to those of all of it."""


def as_it_is(function: Function) -> Function:
    return function


def own_rows(*parts: Tensor) -> tuple[Tensor, ...]:
    """Where the share is the whole batch."""
    return parts


def apply_of(copy: Copy) -> Function:
    return copy.apply


class Objective(Protocol):
    """Its parts are apart because they are fast in different ways: draws on a random generator,
    copies compiled, the network under the optimiser's eyes."""

    def draw(self, images: Tensor, generator: Generator) -> Any:
        """Every random number that the copies of `images` (uint8, B x C x H x W) need."""

    def part(self, draw: Any, rows: slice) -> Any:
        """Of a draw for a whole batch, what some of its images need."""

    def copies(self, images: Tensor, draw: Any) -> tuple[Tensor, ...]:
        """Pure."""

    def loss(
        self, network: ClusteringNetwork, copies: tuple[Tensor, ...], heads: Sequence[str]
    ) -> tuple[Tensor, Terms]:
        """The total, with a gradient, and its parts by name."""


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
    with copy_groups(network, sizes):
        assign = network(torch.cat([original, perturbed]), heads).assign
    parts = {head: torch.split(rows, list(sizes)) for head, rows in assign.items()}
    return (
        {head: part[0] for head, part in parts.items()},
        {head: part[1] for head, part in parts.items()},
    )


class _OriginalAndPerturbed:
    """Copies of the same images; with partners, the second half of a batch is perturbed instead."""

    def __init__(
        self,
        original_copy: OriginalCopy,
        perturbed_copy: PerturbedCopy,
        *,
        partners: bool = False,
        applied: Callable[[Copy], Function] = apply_of,
    ) -> None:
        """`applied` hands back what applies a copy's draws: its own `apply`, or a faster twin."""
        self.original_copy = original_copy
        self.perturbed_copy = perturbed_copy
        self.partners = partners
        self._apply, self._apply_perturbed = applied(original_copy), applied(perturbed_copy)

    def draw(self, images: Tensor, generator: Generator) -> tuple[OriginalDraw, PerturbedDraw]:
        images, others = self._split(images)
        return (
            self.original_copy.draw(images, generator),
            self.perturbed_copy.draw(others, generator),
        )

    def part(
        self, draw: tuple[OriginalDraw, PerturbedDraw], rows: slice
    ) -> tuple[OriginalDraw, PerturbedDraw]:
        return self.original_copy.part(draw[0], rows), self.perturbed_copy.part(draw[1], rows)

    def copies(
        self, images: Tensor, draw: tuple[OriginalDraw, PerturbedDraw]
    ) -> tuple[Tensor, Tensor]:
        images, others = self._split(images)
        return self._apply(images, draw[0]), self._apply_perturbed(others, draw[1])

    def _split(self, images: Tensor) -> tuple[Tensor, Tensor]:
        if not self.partners:
            return images, images
        first, second = images.chunk(2)
        return first, second


class DcdcObjective(_OriginalAndPerturbed):
    """A loss over each head's assignments of both copies: the two contrastive views, or another."""

    def __init__(
        self,
        original_copy: OriginalCopy,
        perturbed_copy: PerturbedCopy,
        *,
        loss: LossFunction,
        autocast: Autocast,
        passes: Passes = two_passes,
        partners: bool = False,
        applied: Callable[[Copy], Function] = apply_of,
        compiled: Callable[[Function], Function] = as_it_is,
        gather: Gather = own_rows,
    ) -> None:
        """`compiled` may hand back a faster twin of the loss."""
        super().__init__(original_copy, perturbed_copy, partners=partners, applied=applied)
        self._loss = compiled(loss)
        self.passes, self._autocast, self._gather = passes, autocast, gather

    def loss(
        self, network: ClusteringNetwork, copies: tuple[Tensor, ...], heads: Sequence[str]
    ) -> tuple[Tensor, Terms]:
        original, perturbed = copies
        with self._autocast():
            assign, assign_perturbed = self.passes(network, original, perturbed, heads)
        totals, terms = [], Terms()
        for head in heads:
            names = network.sub_heads(head)
            pairs = [(assign[name], assign_perturbed[name]) for name in names]
            losses = [self._loss(*self._gather(*pair)) for pair in pairs]
            totals.append(_mean([loss.total for loss in losses]))
            for term in losses[0].terms:
                terms[f"{head}/{term}"] = _mean([loss.terms[term] for loss in losses])
            if len(names) > 1:
                terms |= {name: loss.total for name, loss in zip(names, losses, strict=True)}
        return torch.stack(totals).sum(), terms


def _mean(values: Sequence[Tensor]) -> Tensor:
    """Of a head's one loss, or of those of its sub-heads."""
    return values[0] if len(values) == 1 else torch.stack(list(values)).mean()


class _Perturbed(ABC):
    """Perturbed copies alone, first one of every image, then the next of each."""

    def __init__(
        self,
        perturbed_copy: PerturbedCopy,
        *,
        autocast: Autocast,
        applied: Callable[[Copy], Function] = apply_of,
        gather: Gather = own_rows,
    ) -> None:
        assert perturbed_copy.n_repeats >= 2, perturbed_copy.n_repeats
        self.perturbed_copy = perturbed_copy
        self._apply = applied(perturbed_copy)
        self._autocast, self._gather = autocast, gather

    def draw(self, images: Tensor, generator: Generator) -> PerturbedDraw:
        return self.perturbed_copy.draw(images, generator)

    def part(self, draw: PerturbedDraw, rows: slice) -> PerturbedDraw:
        return self.perturbed_copy.part(draw, rows)

    def copies(self, images: Tensor, draw: PerturbedDraw) -> tuple[Tensor, ...]:
        return (self._apply(images, draw),)

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        loss = self._disagreement(network, copies[0])
        return loss, {"instance": loss}

    @abstractmethod
    def _disagreement(self, network: ClusteringNetwork, copies: Tensor) -> Tensor:
        """Of the copies, rB x C x H x W, about what they show."""


class InstanceObjective(_Perturbed):
    """The perturbed copies of an image find each other among the batch, by their projections."""

    def __init__(self, perturbed_copy: PerturbedCopy, *, temperature: float, **how: Any) -> None:
        super().__init__(perturbed_copy, **how)
        self.temperature = temperature

    def _disagreement(self, network: ClusteringNetwork, copies: Tensor) -> Tensor:
        with self._autocast():
            (projected,) = self._gather(network.project(copies))
        copies_apart = projected.chunk(self.perturbed_copy.n_repeats)
        return instance_loss(*copies_apart, temperature=self.temperature)


class PredictionObjective(_Perturbed):
    """From one of two copies of an image the network predicts what its slow copy makes of the
    other."""

    def __init__(self, perturbed_copy: PerturbedCopy, *, momentum: float, **how: Any) -> None:
        assert perturbed_copy.n_repeats == 2, perturbed_copy.n_repeats
        super().__init__(perturbed_copy, **how)
        self.momentum = momentum

    def _disagreement(self, network: ClusteringNetwork, copies: Tensor) -> Tensor:
        network.follow_slowly(self.momentum)  # what the step before has changed
        n = len(copies) // 2
        with copy_groups(network, (n, n)):
            with self._autocast():
                aim = network.project_slowly(copies)
            with self._autocast():
                predicted = network.predict(copies)
        return prediction_loss(*self._gather(predicted, aim))


class SelfLabelObjective(_OriginalAndPerturbed):
    """What the network is sure of in the original copy is the label of the perturbed one."""

    def __init__(
        self,
        original_copy: OriginalCopy,
        perturbed_copy: PerturbedCopy,
        *,
        threshold: float,
        autocast: Autocast,
        applied: Callable[[Copy], Function] = apply_of,
        gather: Gather = own_rows,
    ) -> None:
        super().__init__(original_copy, perturbed_copy, applied=applied)
        self.threshold = threshold
        self._autocast, self._gather = autocast, gather

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        original, perturbed = copies
        # Each in its own: before 2.11 torch keeps the weights cast without a gradient for later.
        with torch.no_grad(), self._autocast():
            assign = network(original).assign[CLUSTER_HEAD]
        with self._autocast():
            assign_perturbed = network(perturbed).assign[CLUSTER_HEAD]
        assign, assign_perturbed = self._gather(assign, assign_perturbed)
        loss, n_sure = self_label_loss(assign, assign_perturbed, self.threshold)
        return loss, {"self_label": loss, "sure": n_sure / len(assign)}
