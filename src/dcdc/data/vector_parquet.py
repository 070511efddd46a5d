"""Feature vectors in Parquet, one file or many: a column of lists of floats, and what goes with it.

Shapes: N rows of D features.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.fingerprint import files_fingerprint
from dcdc.data.folder import IMAGE_EXTENSIONS
from dcdc.data.parquet import has_images
from dcdc.data.parquet_files import Shard, first_shard, open_shards, opened, rows_from
from dcdc.data.parquet_labels import chosen_label, read_classes
from dcdc.data.path_list import PATH_COLUMNS, unknown_column
from dcdc.data.vector_arrays import joined
from dcdc.data.vector_columns import NAME_COLUMNS
from dcdc.data.vector_facts import RowFacts, facts_of
from dcdc.data.vector_rows import (
    Reading,
    VectorRows,
    as_features,
    content_key,
    feature_type,
    kept_rows,
)
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 4 * 2**20


def holds_vector_column(source: Path, column: str | None = None) -> bool:
    """Whether vectors are meant: lists of floats and no images, or a column that is named."""
    schema = first_shard(source).schema
    return column is not None or (bool(_candidates(schema)) and not has_images(schema))


def load_vector_parquet(source: Path, reading: Reading) -> VectorSet:
    """The rows of a `.parquet` file, or of all below a folder in the order of their paths.

    Labels are found as for images. A column of paths, where there is one, tells names and files.
    """
    shards = open_shards(source)
    if not shards:
        raise InputError(f"{source} has no rows: give Parquet with feature vectors")
    schema = shards[0].schema
    vectors = _vector_column(schema, reading.column, source)
    label = chosen_label(schema, reading.target, source)
    facts = _facts(shards, label, str(source))
    dtype = feature_type(np.dtype(schema.field(vectors).type.value_type.to_pandas_dtype()))
    shape = (len(facts), _width(shards, vectors, source))
    rows = VectorRows(
        where=f"column {vectors!r} of {source}",
        key=_key(source, shards, vectors),
        shape=shape,
        dtype=dtype,
        blocks=partial(_blocks, shards, vectors, shape[1], dtype),
    )
    found, skipped = kept_rows(rows, reading)
    return joined(found, skipped, facts, str(source))


def _candidates(schema: "pa.Schema") -> list[str]:
    from pyarrow import types

    return [field.name for field in schema if _holds(field.type, types.is_floating)]


def _holds(kind: "pa.DataType", *tests: Callable[["pa.DataType"], bool]) -> bool:
    """Whether a type is that of lists, and of what."""
    from pyarrow import types

    is_list = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(kind) for test in is_list) and any(test(kind.value_type) for test in tests)


def _vector_column(schema: "pa.Schema", column: str | None, source: Path) -> str:
    from pyarrow import types

    if column is not None:
        if column not in schema.names:
            raise unknown_column(column, schema.names, source)
        kind = schema.field(column).type
        if not _holds(kind, types.is_floating, types.is_integer):
            raise InputError(
                f"column {column!r} of {source} is of type {kind}: give one of lists of numbers "
                f"({', '.join(_candidates(schema)) or 'there is none'})"
            )
        return column
    found = _candidates(schema)
    if len(found) != 1:
        raise InputError(
            f"{source} has several columns of vectors, {', '.join(found)}",
            remedy="name one by {column}",
        )
    return found[0]


def _facts(shards: Sequence[Shard], label: str | None, where: str) -> RowFacts:
    targets, class_names = (None, ()) if label is None else read_classes(shards, label)
    schema = shards[0].schema
    texts = [name for name in schema.names if name != label and _is_text(schema.field(name).type)]
    files_at, names_at = _path_column(texts, shards[0]), _known(NAME_COLUMNS, texts)
    files = None if files_at is None else _texts(shards, files_at)
    names = None if names_at is None else _texts(shards, names_at)
    if names is not None and None in names:
        names = None
    folder = shards[0].path.parent
    if files is not None and any(shard.path.parent != folder for shard in shards):
        folders = (shard.path.parent for shard in shards for _ in range(shard.n_rows))
        files = [path and str(at / path) for at, path in zip(folders, files, strict=True)]
    if files is not None and not all(files):
        files = None  # some image has none: the rows are numbered
    n_rows = sum(shard.n_rows for shard in shards)
    found = facts_of(n_rows, None, names, files, where, folder)  # type: ignore[arg-type]
    return RowFacts(found.names, targets, class_names, found.files)


def _is_text(kind: "pa.DataType") -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _known(known: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for key in known for name in columns if name.lower() == key), None)


def _path_column(texts: Sequence[str], shard: Shard) -> str | None:
    """That of a known name, or the only one whose first value is the name of an image."""
    known = _known(PATH_COLUMNS, texts)
    if known is not None or not texts:
        return known
    with opened(shard.path) as file:
        first = next(file.iter_batches(1, columns=list(texts), use_threads=False))
    ends = tuple(f".{extension}" for extension in IMAGE_EXTENSIONS)
    found = [
        name for name, value in first.to_pylist()[0].items() if (value or "").lower().endswith(ends)
    ]
    return found[0] if len(found) == 1 else None


def _texts(shards: Sequence[Shard], column: str) -> list[str | None]:
    found: list[str | None] = []
    for shard in shards:
        with opened(shard.path) as file:
            found += file.read(columns=[column], use_threads=False).column(0).to_pylist()
    return found


def _key(source: Path, shards: Sequence[Shard], column: str) -> str:
    files = files_fingerprint(source, ((shard.name, shard.path.stat()) for shard in shards))
    footers = hashlib.sha256(b"".join(shard.footer_digest for shard in shards)).hexdigest()
    return content_key(files, footers, column)


def _width(shards: Sequence[Shard], column: str, source: Path) -> int:
    """D: of the type, or of the first list that is there."""
    from pyarrow import types

    kind = shards[0].schema.field(column).type
    if types.is_fixed_size_list(kind):
        width = int(kind.list_size)
    else:
        lists = (each for shard in shards for each in rows_from(shard, [column], 0, 1024))
        widths = (length for some in lists for length in _lengths(some).tolist())
        width = next((found for found in widths if found > 0), 0)
    if not width:
        raise InputError(f"column {column!r} of {source} holds no number: give N x D features")
    return width


def _lengths(lists: "pa.Array") -> NDArray[np.int64]:
    """-1 for a list that is missing."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists), -1)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _blocks(
    shards: Sequence[Shard], column: str, width: int, dtype: np.dtype[Any], start: int
) -> Iterator[NDArray[Any]]:
    n_rows = max(1, _BATCH_BYTES // (width * 8))
    for shard in shards:
        at = start
        if start < shard.n_rows:
            for lists in rows_from(shard, [column], start, n_rows):
                yield _matrix(lists, width, dtype, f"{shard.path}, column {column!r}", at)
                at += len(lists)
        start = max(0, start - shard.n_rows)


def _matrix(
    lists: "pa.Array", width: int, dtype: np.dtype[Any], where: str, first: int
) -> NDArray[Any]:
    """Lists of equal length; one that is missing, or a value in it, becomes NaN."""
    lengths = _lengths(lists)
    odd = np.flatnonzero((lengths != width) & (lengths >= 0))
    if len(odd):
        raise InputError(
            f"{where}: row {first + odd[0]} has {lengths[odd[0]]} numbers, the first one "
            f"{width}: give vectors of one backbone, all of one width"
        )
    values = lists.flatten()  # leaves out the lists that are missing
    if values.null_count:
        values = values.cast("float32")
    numbers = as_features(values.to_numpy(zero_copy_only=False).reshape(-1, width), dtype)
    if len(numbers) == len(lists):
        return numbers
    found = np.full((len(lists), width), np.nan, dtype)
    found[lengths >= 0] = numbers
    return found
