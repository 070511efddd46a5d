"""Feature vectors that are arrays in memory, and the checks that every source of vectors shares.

Shapes: N rows, one for each image, of D features.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.data.decoded import check_on_bad
from dcdc.data.mapped import release_pages
from dcdc.data.vector_facts import RowFacts, facts_of
from dcdc.data.vector_rows import BFLOAT16, Reading, blocks_of, settled
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError
from dcdc.runtime.journal import Skips


def from_vectors(
    vectors: ArrayLike,
    targets: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    copies: ArrayLike | None = None,
    files: Sequence[str | Path] | None = None,
    where: str = "vectors",
    *,
    on_bad: str = "refuse",
    at_least: int = 1,
    may_be_equal: bool = False,
) -> VectorSet:
    """A VectorSet from arrays; `where` names them in error messages.

    float16 and float32 are kept without a copy, other numbers become float32. `copies` are the
    features of another copy of the same images. A row with NaN or infinite values is refused, or
    with `on_bad="skip"` left out and recorded. `at_least` so many rows must stay. Rows that are all
    equal are refused unless they `may_be_equal`, as those of a prediction may.
    """
    matrix = as_matrix(vectors, where)
    pair = None if copies is None else as_matrix(copies, f"the copies of {where}")
    facts = facts_of(len(matrix), targets, names, files, where)
    found = vector_set_of(matrix, facts, where, Reading(on_bad=on_bad), copies=pair)
    require_enough(found, where, at_least=at_least, may_be_equal=may_be_equal)
    return found


def vector_set_of(
    vectors: NDArray[Any],
    facts: RowFacts,
    where: str,
    reading: Reading,
    *,
    copies: NDArray[Any] | None = None,
    key: str | None = None,
) -> VectorSet:
    """Of matrices that `as_matrix` let pass; with a `key`, large ones may go to the row cache."""
    check_on_bad(reading.on_bad)
    if copies is not None and copies.shape != vectors.shape:
        raise InputError(
            f"{where} has shape {vectors.shape} but its copies have {copies.shape}: give the "
            "features of the same images, of the same backbone, in the same order"
        )
    kept, skipped = settled(vectors, where, key, reading)
    if copies is None:
        return joined(kept, skipped, facts, where)
    pair_key = None if key is None else f"{key}-copies"
    pair, pair_skipped = settled(copies, f"the copies of {where}", pair_key, reading)
    either = tuple(sorted(dict((*pair_skipped, *skipped)).items()))
    kept, pair = (
        _without(array, own, either) for array, own in ((kept, skipped), (pair, pair_skipped))
    )
    return joined(kept, either, facts, where, pair)


def joined(
    vectors: NDArray[Any],
    skipped: Skips,
    facts: RowFacts,
    where: str,
    copies: NDArray[Any] | None = None,
) -> VectorSet:
    """Rows that were kept, with what is known of all."""
    if not len(vectors):
        raise InputError(
            f"none of the {len(facts)} rows of {where} is left ({skipped[0][1]}): give finite "
            "feature vectors"
        )
    some, left_out = facts.without(skipped)
    return VectorSet(
        vectors=vectors,
        names=some.names,
        targets=some.targets,
        class_names=some.class_names,
        skipped=left_out,
        copies=copies,
        files=some.files,
    )


def as_matrix(vectors: ArrayLike, where: str) -> NDArray[Any]:
    """N x D numbers of any type, not looked at yet; anything else is refused."""
    if hasattr(vectors, "toarray"):
        raise InputError(f"{where} is a sparse matrix: give {where}.toarray()")
    try:
        array = np.asarray(vectors)
    except (ValueError, TypeError, RuntimeError) as error:  # the latter two of torch's tensors
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(
            f"{where} cannot be read as one array ({reason}): give N x D numbers"
        ) from None
    shape = array.shape
    if array.ndim != 2:
        hint = f", for example {where}.reshape(1, -1) for one row" if array.ndim == 1 else ""
        raise InputError(
            f"{where} has shape {shape}: give feature vectors as N x D, a row for each image{hint}"
        )
    if 0 in shape:
        missing = "row" if shape[0] == 0 else "feature"
        raise InputError(f"{where} has shape {shape}, which holds no {missing}: give at least one")
    if array.dtype.kind not in "biuf" and array.dtype != BFLOAT16:
        raise InputError(f"{where} has type {array.dtype}: give floats or integers")
    return array


def require_enough(
    found: VectorSet, where: str, *, at_least: int = 1, may_be_equal: bool = False
) -> None:
    """Refuses too few rows, and rows that are all equal."""
    if found.n_images < at_least:
        rows = f"{found.n_images} row" + ("s" if found.n_images > 1 else "")
        raise InputError(f"{where} has {rows}: give at least {at_least}")
    if not may_be_equal and found.n_images > 1 and _all_equal(found.vectors):
        raise InputError(
            f"the {found.n_images} rows of {where} are all equal, so that nothing tells the images "
            "apart: check the backbone, or how its features were stored"
        )


def _all_equal(vectors: NDArray[Any]) -> bool:
    first = np.array(vectors[0])
    equal = all(bool((vectors[block] == first).all()) for block in blocks_of(vectors))
    release_pages(vectors)
    return equal


def _without(kept: NDArray[Any], own: Skips, either: Skips) -> NDArray[Any]:
    """`kept` lacks the rows in `own`, and shall lack those in `either`."""
    if len(own) == len(either):
        return kept
    rows = np.delete(np.arange(len(kept) + len(own)), [row for row, _ in own])
    return kept[~np.isin(rows, [row for row, _ in either])]
