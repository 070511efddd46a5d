"""Parquet files of one kind: which there are, and what their footers say."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.data.folder import files_below
from dcdc.data.listing import refuse_same_names
from dcdc.errors import InputError
from dcdc.stored.reading import require_regular

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_READ_BYTES = 2**20  # at a time; by default pyarrow reads a row group's whole column at once


@dataclass(frozen=True)
class Shard:
    """One file, and what is known of it before its rows are read."""

    path: Path
    name: str
    """Relative to the source."""
    schema: "pa.Schema"
    metadata: "pq.FileMetaData"
    footer_digest: bytes

    @property
    def n_rows(self) -> int:
        return int(self.metadata.num_rows)

    @property
    def row_groups(self) -> list["pq.RowGroupMetaData"]:
        return [self.metadata.row_group(at) for at in range(self.metadata.num_row_groups)]


def open_shards(source: Path) -> list[Shard]:
    """A file, or all below a folder in the order of their relative paths, those without rows left
    out; their columns agree."""
    first, *others = shards = [_shard(path, name) for name, path in _files(source)]
    refuse_same_names(first.schema.names, first.path)
    for other in others:
        if _columns(other) != _columns(first):
            raise InputError(
                f"{first.path} and {other.path} have different columns: put them in two folders"
            )
    return [shard for shard in shards if shard.n_rows]


def first_shard(source: Path) -> Shard:
    name, path = _files(source)[0]
    return _shard(path, name)


@contextmanager
def opened(path: Path) -> Iterator["pq.ParquetFile"]:
    try:
        import pyarrow.parquet as pq

        with pq.ParquetFile(
            require_regular(path),
            buffer_size=_READ_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        ) as file:
            yield file
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check its permissions") from None
    except Exception as error:  # whatever a damaged file makes pyarrow raise
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(
            f"{path} is no Parquet file, damaged or cut short ({reason}): write or get it again"
        ) from None


def rows_from(
    shard: Shard, columns: Sequence[str], start: int, n_rows: int
) -> Iterator["pa.Array"]:
    """A column, by its name or its leaves, from a row on, so many rows at a time; whole row groups
    before it are not read."""
    groups, first = shard.row_groups, 0
    while start >= groups[first].num_rows:
        start -= groups[first].num_rows
        first += 1
    with opened(shard.path) as file:
        if file.metadata.num_rows != shard.n_rows:
            raise InputError(f"{shard.path} changed while it was read: start again")
        for batch in file.iter_batches(
            n_rows, range(first, len(groups)), columns, use_threads=False
        ):
            yield batch.column(0).slice(start)
            start -= min(start, batch.num_rows)


def _files(source: Path) -> list[tuple[str, Path]]:
    if source.exists() and not source.is_dir():
        require_regular(source)
        return [(source.name, source.absolute())]
    root = source.resolve()
    files = [(name, root / name) for name in files_below(root, ("parquet",))]
    if not files:
        raise InputError(f"no .parquet file in folder {source}: give one with images")
    return files


def _shard(path: Path, name: str) -> Shard:
    with opened(path) as file, path.open("rb") as raw:
        raw.seek(-8, 2)  # the footer comes before its length, four bytes, and the magic number
        n_bytes = int.from_bytes(raw.read(4), "little")
        raw.seek(-8 - n_bytes, 2)
        digest = hashlib.sha256(raw.read(n_bytes)).digest()
        return Shard(path, name, file.schema_arrow, file.metadata, digest)


def _columns(shard: Shard) -> list[tuple[str, "pa.DataType"]]:
    return [(field.name, field.type) for field in shard.schema]
