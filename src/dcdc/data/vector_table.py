"""Feature vectors in a table of numbers, `.csv` or `.tsv`, a row for each image.

Shapes: N rows of D features.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.fingerprint import file_fingerprint
from dcdc.data.path_list import encode_texts
from dcdc.data.vector_arrays import joined
from dcdc.data.vector_columns import Columns, read_columns
from dcdc.data.vector_facts import RowFacts, facts_of
from dcdc.data.vector_rows import Reading, VectorRows, content_key, kept_rows
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 2**20  # of text; pyarrow reads some thirty of them ahead
_MISSING = ("", "nan", "NaN", "NAN", "null", "NULL", "NA", "N/A", "None")


def is_table_of_numbers(file: Path) -> bool:
    """By the first lines; False for a list of image files, and for what is no table."""
    found = read_columns(file, None)
    return found is not None and found.are_vectors


def load_vector_table(file: Path, reading: Reading) -> VectorSet:
    """Every numeric column is a feature, those of labels, paths and names aside."""
    columns = read_columns(file, reading.target)
    assert columns is not None
    if columns.others:
        name = columns.names[columns.others[0]]
        raise InputError(
            f"column {name!r} of {file} holds no numbers: name it in the first line as that of the "
            "labels, label or class, or of the images, path or file; or leave it out"
        )
    facts = _facts(file, columns)
    shape = (len(facts), len(columns.features))
    rows = VectorRows(
        where=str(file),
        key=content_key(file_fingerprint(file), repr(columns)),
        shape=shape,
        dtype=np.dtype(np.float32),
        blocks=partial(_blocks, file, columns),
    )
    found, skipped = kept_rows(rows, reading)
    return joined(found, skipped, facts, str(file))


def _facts(file: Path, columns: Columns) -> RowFacts:
    """Labels, paths and names of all rows, and so their number."""
    wanted = [at for at in (columns.label, columns.path, columns.name) if at is not None]
    texts: dict[int, list[str]] = {at: [] for at in wanted or columns.features[:1]}
    for batch in _batches(file, columns, list(texts), as_text=True):
        for number, found in enumerate(texts.values()):
            found += [value.strip() for value in batch.column(number).to_pylist()]
    n_rows = len(next(iter(texts.values())))
    if not n_rows:
        raise InputError(f"{file} has no rows: give a row of numbers for each image")

    def of(at: int | None) -> list[str] | None:
        return None if at is None else texts[at]

    labels, paths = of(columns.label), of(columns.path)
    for values, what in ((labels, "label"), (paths, "path")):
        if values is not None and "" in values:
            raise InputError(
                f"{file}, row {values.index('')}: no {what}",
                remedy=("fill it", "use {target=none}") if what == "label" else "fill it",
            )
    targets, class_names = (None, ()) if labels is None else encode_texts(labels, file)
    known = facts_of(n_rows, None, of(columns.name), paths, str(file), file.absolute().parent)
    return RowFacts(known.names, targets, class_names, known.files)


def _blocks(file: Path, columns: Columns, start: int) -> Iterator[NDArray[Any]]:
    for batch in _batches(file, columns, columns.features, as_text=False):
        n_rows = batch.num_rows
        if start < n_rows:
            block = np.empty((n_rows, len(columns.features)), np.float32)
            for at in range(block.shape[1]):
                block[:, at] = batch.column(at).to_numpy(zero_copy_only=False)  # missing: NaN
            yield block[start:]
        start = max(0, start - n_rows)


def _batches(
    file: Path, columns: Columns, wanted: Sequence[int], *, as_text: bool
) -> Iterator["pa.RecordBatch"]:
    """Some columns, a few rows at a time."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(at) for at in range(len(columns.names))]
    some = [names[at] for at in wanted]
    layout = csv.ReadOptions(
        use_threads=False,  # with threads no fault knows its row
        block_size=max(_BLOCK_BYTES, 8 * columns.n_line_bytes),  # no line may be longer
        skip_rows=columns.n_header_lines,
        column_names=names,
    )
    types = csv.ConvertOptions(
        column_types={name: pa.string() if as_text else pa.float32() for name in some},
        include_columns=some,
        null_values=list(_MISSING),
        strings_can_be_null=False,
    )
    parsing = csv.ParseOptions(delimiter=columns.delimiter)
    with _told(file, columns), csv.open_csv(file, layout, parsing, types) as reader:
        yield from reader


@contextmanager
def _told(file: Path, columns: Columns) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except pa.ArrowException as error:
        reason = " ".join(str(error).split()).removeprefix("CSV parse error: ")
        if reason.startswith("Empty CSV"):
            raise InputError(f"{file} has no rows: give a row of numbers for each image") from None
        raise InputError(
            f"{file} cannot be read ({reason[:200]}): give {len(columns.names)} fields in every "
            "row, and numbers alone as features"
        ) from None
