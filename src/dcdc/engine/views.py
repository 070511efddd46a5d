"""The copies of images that a step sees: drawn, then applied.

Shapes: B images, r perturbed copies of each; of feature vectors, 2B rows.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from dcdc.augment import PerturbedCopy
from dcdc.augment.pipeline import PerturbedDraw

Apply = Callable[..., Any]


class Copy(Protocol):
    """Original, perturbed or strong."""

    def draw(self, images: Tensor, generator: Generator) -> Any: ...

    def part(self, draw: Any, rows: slice) -> Any: ...

    def apply(self, images: Tensor, draw: Any) -> Tensor: ...

    def has_kernel(self, device: torch.device) -> bool: ...


def apply_of(copy: Copy) -> Apply:
    return copy.apply


class Views:
    """What the views of all objectives have in common."""

    def see(self, indices: Tensor) -> None:
        """Which rows of the store the next copies are of. Few objectives ask."""


class OriginalAndPerturbed(Views):
    """Copies of the same images; with partners, the second half of a batch is perturbed instead."""

    def __init__(
        self,
        original_copy: Copy,
        perturbed_copy: Copy,
        *,
        partners: bool = False,
        applied: Callable[[Copy], Apply] = apply_of,
    ) -> None:
        """`applied` gives what applies a copy's draws: its own `apply`, or a faster version."""
        self.original_copy = original_copy
        self.perturbed_copy = perturbed_copy
        self.partners = partners
        self._apply, self._apply_perturbed = applied(original_copy), applied(perturbed_copy)

    def draw(self, images: Tensor, generator: Generator) -> tuple[Any, Any]:
        images, others = self._split(images)
        return (
            self.original_copy.draw(images, generator),
            self.perturbed_copy.draw(others, generator),
        )

    def part(self, draw: tuple[Any, Any], rows: slice) -> tuple[Any, Any]:
        return self.original_copy.part(draw[0], rows), self.perturbed_copy.part(draw[1], rows)

    def copies(self, images: Tensor, draw: tuple[Any, Any]) -> tuple[Tensor, Tensor]:
        images, others = self._split(images)
        return self._apply(images, draw[0]), self._apply_perturbed(others, draw[1])

    def _split(self, images: Tensor) -> tuple[Tensor, Tensor]:
        if not self.partners:
            return images, images
        first, second = images.chunk(2)
        return first, second


class VectorPairs(Views):
    """Feature vectors and their partners, the second half of a batch: nothing is drawn, since
    neighbours take the place of perturbed copies."""

    def draw(self, rows: Tensor, generator: Generator) -> None:
        pass

    def part(self, draw: None, rows: slice) -> None:
        pass

    def copies(self, rows: Tensor, draw: None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        first, second = rows.chunk(2)
        return first, second


class VectorRows(Views):
    """Feature vectors as they are."""

    def draw(self, rows: Tensor, generator: Generator) -> None:
        pass

    def part(self, draw: None, rows: slice) -> None:
        pass

    def copies(self, rows: Tensor, draw: None) -> tuple[Tensor]:  # noqa: ARG002
        return (rows,)


class Perturbed(Views):
    """Perturbed copies alone: first one of every image, then the next of each."""

    def __init__(
        self, perturbed_copy: PerturbedCopy, *, applied: Callable[[Copy], Apply] = apply_of
    ) -> None:
        self.perturbed_copy = perturbed_copy
        self._apply = applied(perturbed_copy)

    def draw(self, images: Tensor, generator: Generator) -> PerturbedDraw:
        return self.perturbed_copy.draw(images, generator)

    def part(self, draw: PerturbedDraw, rows: slice) -> PerturbedDraw:
        return self.perturbed_copy.part(draw, rows)

    def copies(self, images: Tensor, draw: PerturbedDraw) -> tuple[Tensor, ...]:
        return (self._apply(images, draw),)


class PerturbedPair(Perturbed):
    """Two perturbed copies of each image."""

    def __init__(
        self, perturbed_copy: PerturbedCopy, *, applied: Callable[[Copy], Apply] = apply_of
    ) -> None:
        assert perturbed_copy.n_repeats == 2, perturbed_copy.n_repeats
        super().__init__(perturbed_copy, applied=applied)
