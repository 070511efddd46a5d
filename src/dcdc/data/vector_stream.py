"""Feature vectors straight to whoever asks, a block at a time, as images come from `image_stream`.

Shapes: N rows kept of the source, D features.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dcdc.data.fingerprint import source_fingerprint, with_targets
from dcdc.data.image_stream import ImageStream
from dcdc.data.mapped import slices_of
from dcdc.data.row_cache import Block
from dcdc.data.sources import Given, readable, require_kind
from dcdc.data.vector_files import load_vectors
from dcdc.data.vector_rows import Reading
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError


def holds_feature_vectors(source: Given, column: str | None = None) -> bool:
    """Whether a source that is there holds feature vectors, by headers alone."""
    with readable(source):
        return require_kind(source).has_vectors(str(source), column)


def open_vector_stream(
    source: str | Path,
    *,
    n_features: int,
    target: str | None = None,
    column: str | None = None,
    on_bad: str = "refuse",
) -> ImageStream:
    """Any source of feature vectors that `load_data` takes, of so many features each.

    Rows that were left out come last, so that whoever reads them hears of each.
    """
    reading = Reading(target, column, on_bad)
    with readable(source):
        found = load_vectors(source, reading)
    if found.n_features != n_features:
        raise InputError(
            f"the model was trained on vectors of {n_features} features, those of {source} have "
            f"{found.n_features}: give those of the same backbone"
        )
    return _stream(found, source, column)


def _stream(found: VectorSet, source: str | Path, column: str | None) -> ImageStream:
    vectors, files = found.vectors, found.files
    n_kept = len(vectors)
    left_out = tuple((n_kept + at, each.reason) for at, each in enumerate(found.skipped))

    def read(start: int, n_rows: int) -> Iterator[Block]:
        for some in slices_of(vectors, n_rows, start):
            rows = np.array(vectors[some], np.float32, order="C")
            yield Block(rows, n_read=len(rows))
        rest = tuple(each for each in left_out if each[0] >= start)
        if rest:
            yield Block(np.empty((0, found.n_features), np.float32), len(rest), rest)

    names: Sequence[str] = found.names
    if found.skipped:
        names = (*found.names, *(each.name for each in found.skipped))
    told = f"{source_fingerprint(source, vectors)} {vectors.shape} {column}"
    return ImageStream(
        where=str(source),
        names=names,
        fingerprint=with_targets(told, found.targets, found.class_names),
        read=read,
        targets=found.targets,
        class_names=found.class_names,
        file_of=None if files is None else files.__getitem__,
    )
