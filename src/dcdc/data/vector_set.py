"""What a source of feature vectors becomes: one row for each image, as a backbone made it.

Shapes: N rows, one for each image, of D features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.image_set import ImageSet, Skipped


@dataclass(frozen=True, eq=False)
class VectorSet:
    """Feature vectors with names and optional targets: the sibling of ImageSet.

    Values are finite, which whoever builds one has checked: an assert would read a mapped array.
    """

    vectors: NDArray[np.floating[Any]]
    """N x D, float16 or float32, perhaps memory-mapped."""
    names: Sequence[str]
    targets: NDArray[np.int64] | None = None  # codes into class_names
    class_names: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    copies: NDArray[np.floating[Any]] | None = None
    """N x D: feature vectors of another copy (view) of the same images."""
    files: Sequence[Path] | None = None
    """Where each row's image lies, for reports."""
    known_as: str = ""
    """The built-in name, where the images are such a set."""

    def __post_init__(self) -> None:
        vectors, targets = self.vectors, self.targets
        _assert_features(vectors)
        assert len(self.names) == len(vectors), (len(self.names), len(vectors))
        assert (targets is None) == (not self.class_names)
        if targets is not None:
            assert targets.dtype == np.int64, targets.dtype
            assert targets.shape == (len(vectors),), targets.shape
            assert 0 <= targets.min() <= targets.max() < len(self.class_names)
        if self.copies is not None:
            _assert_features(self.copies)
            assert self.copies.shape == vectors.shape, (self.copies.shape, vectors.shape)
        if self.files is not None:
            assert len(self.files) == len(vectors), (len(self.files), len(vectors))

    @property
    def n_images(self) -> int:
        return len(self.vectors)

    @property
    def n_features(self) -> int:
        """D."""
        return int(self.vectors.shape[1])

    @property
    def n_classes(self) -> int | None:
        return len(self.class_names) or None


def _assert_features(vectors: NDArray[Any]) -> None:
    assert vectors.dtype in (np.float16, np.float32), vectors.dtype
    assert vectors.ndim == 2, vectors.shape
    assert min(vectors.shape) >= 1, vectors.shape


Data = ImageSet | VectorSet
"""What a run groups."""
