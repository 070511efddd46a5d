"""Features of a run's images, where it has kept them: of some at once, of all a few at a time.

Shapes: N images of the run, n of them with features at once, D features.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.data.vector_set import VectorSet
from dcdc.report.facts import RunFacts, RunSample
from dcdc.run_folder import RunFolder
from dcdc.viewer.oddity import Blocks

_MOST_AT_ONCE = 20_000
"""Of feature vectors that a source holds."""
_ROWS_AT_ONCE = 4096


class KeptFeatures(NamedTuple):
    rows: NDArray[np.int64] = np.arange(0)
    """n, rising: positions among the run's images."""
    some: NDArray[np.floating] | None = None
    """n x D"""
    every: Blocks | None = None
    """Of all N, where `some` are not all."""


def kept_features(
    folder: RunFolder, facts: RunFacts, sample: RunSample | None, vectors: VectorSet | None
) -> KeptFeatures:
    """`vectors`: what the run grouped, if not images, and if it is at hand."""
    n_images = len(facts.names)
    if vectors is not None and facts.why_not_these_images(vectors) is not None:
        vectors = None
    if vectors is not None and n_images <= _MOST_AT_ONCE:
        return KeptFeatures(np.arange(n_images), vectors.vectors)
    if sample is None:
        return KeptFeatures()
    if len(sample.rows) == n_images:
        return KeptFeatures(sample.rows, sample.features)
    if vectors is not None:
        return KeptFeatures(sample.rows, sample.features, lambda: _in_blocks(vectors.vectors))
    if folder.features_file.exists():
        return KeptFeatures(
            sample.rows,
            sample.features,
            lambda: folder.read_features(_ROWS_AT_ONCE, n_images) or iter(()),
        )
    return KeptFeatures(sample.rows, sample.features)


def _in_blocks(vectors: NDArray[np.floating]) -> Iterator[NDArray[np.floating]]:
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        yield vectors[start : start + _ROWS_AT_ONCE]
