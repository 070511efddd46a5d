"""What every source becomes: square uint8 images, their names and, where known, their classes.

Shapes: N images, H = W pixels a side, C channels (1 or 3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dcdc.data.mapped import gather_spread
from dcdc.errors import InputError

MIN_SIDE = 8


@dataclass(frozen=True)
class Skipped:
    """An image that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images (N x H x W x C, uint8, perhaps memory-mapped) with names and optional targets."""

    images: NDArray[np.uint8]
    names: Sequence[str]
    targets: NDArray[np.int64] | None = None  # codes into class_names
    class_names: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    extra: NDArray[np.uint8] | None = None
    """More images, N' x H x W x C, that train the over-clustering head and are not answered."""
    known_as: str = ""
    """The built-in name, where the images are such a set."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Files of the source that are no images to read here, counted by kind."""
    by_folder: bool = False
    """Whether the classes are sub-folders, which may mean something else: years, or phones."""

    def __post_init__(self) -> None:
        images, targets = self.images, self.targets
        assert images.dtype == np.uint8, images.dtype
        assert images.ndim == 4, images.shape
        assert images.shape[0] >= 1, images.shape
        assert images.shape[1] == images.shape[2] >= MIN_SIDE, images.shape
        assert images.shape[3] in (1, 3), images.shape
        assert len(self.names) == len(images), (len(self.names), len(images))
        assert (targets is None) == (not self.class_names)
        if targets is not None:
            assert targets.dtype == np.int64, targets.dtype
            assert targets.shape == (len(images),), targets.shape
            assert 0 <= targets.min() <= targets.max() < len(self.class_names)
        if self.extra is not None:
            assert self.extra.dtype == np.uint8, self.extra.dtype
            assert self.extra.shape[1:] == images.shape[1:], self.extra.shape

    @property
    def n_images(self) -> int:
        return len(self.images)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """H, W, C."""
        _, height, width, channels = self.images.shape
        return height, width, channels

    @property
    def side(self) -> int:
        return self.image_shape[0]

    @property
    def channels(self) -> int:
        return self.image_shape[2]

    @property
    def n_classes(self) -> int | None:
        return len(self.class_names) or None


class NumberedNames(Sequence[str]):
    """`stem-0000`, ...: zero-padded, so that sorting keeps the order; made when asked for."""

    def __init__(self, stem: str, numbers: range) -> None:
        self._stem, self._numbers = stem, numbers
        self._width = max(4, len(str(numbers.stop - 1)))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(map(self._name, self._numbers[index]))
        return self._name(self._numbers[index])

    def _name(self, number: int) -> str:
        return f"{self._stem}-{number:0{self._width}d}"


def numbered_names(stem: str, n_images: int) -> NumberedNames:
    return NumberedNames(stem, range(n_images))


def classes_of_rows(
    targets: NDArray[np.int64] | None, class_names: tuple[str, ...], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Of some of the images: a class may have lost all of its own."""
    if targets is None:
        return None, ()
    codes, found = np.unique(targets[rows], return_inverse=True)
    return found.astype(np.int64), tuple(class_names[code] for code in codes)


def channel_statistics(images: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel of pixels in [0, 1], from at most 10,000 images."""
    n_pixels = 0
    total = squares = np.zeros(images.shape[-1], np.int64)
    for some in gather_spread(images, about=10_000, at_a_time=256):
        pixels = some.reshape(-1, images.shape[-1]).astype(np.int64)
        n_pixels += len(pixels)
        total, squares = total + pixels.sum(axis=0), squares + (pixels**2).sum(axis=0)
    mean = total / n_pixels / 255
    std = np.sqrt(np.maximum(squares / n_pixels / 255**2 - mean**2, 0))
    # A set of one flat colour has no deviation to divide by.
    return tuple(mean.round(6).tolist()), tuple(np.maximum(std, 1e-3).round(6).tolist())


def check_side(size: int | None) -> None:
    """A side that the user asked for, before anything is read."""
    if size is not None and size < MIN_SIDE:
        raise InputError(f"image size is {size}: give {MIN_SIDE} or more pixels a side")
