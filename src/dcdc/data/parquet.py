"""Images in Parquet, one file or many, laid out as Hugging Face does: {bytes, path} and a label."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.data.fingerprint import files_fingerprint
from dcdc.data.folder import file_inside
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.parquet_files import Shard, open_shards, opened, rows_from
from dcdc.data.parquet_labels import chosen_label, read_classes
from dcdc.errors import InputError
from dcdc.printable import utf8_name

if TYPE_CHECKING:
    import pyarrow as pa

IMAGE_COLUMNS = ("image", "img")
_BATCH_BYTES = 4 * 2**20
_MOST_ROWS = 1024  # in a batch

Paths = list[list[str | None]]  # of each shard's rows


@dataclass(frozen=True)
class _ImageColumn:
    name: str
    parts: tuple[str, ...]
    """Of a struct, `bytes` and perhaps `path`; none: plain bytes."""

    @property
    def leaves(self) -> list[str]:
        return [f"{self.name}.{part}" for part in self.parts] or [self.name]


def list_parquet(source: Path, target: str | None = None) -> Listing:
    """The rows of a `.parquet` file, or of all below a folder in the order of their paths.

    `target` names the label column; without it that is `label` or `labels`, or the only other one
    by Hugging Face's metadata or by its name. Images are named by their paths where each has its
    own, otherwise by file and row.
    """
    shards = open_shards(source)
    if not shards:
        raise InputError(f"{source} has no rows: give Parquet with images")
    schema = shards[0].schema
    column = _image_column(schema, source)
    label = chosen_label(schema, target, source)
    targets, class_names = (None, ()) if label is None else read_classes(shards, label)
    paths = [_paths(shard, column) for shard in shards]

    def encoded(start: int) -> Iterator[Encoded]:
        for shard in shards:
            if start < shard.n_rows:
                yield from _images(shard, column, start)
            start = max(0, start - shard.n_rows)

    return Listing(
        str(source),
        _names(shards, paths),
        encoded,
        _fingerprint(source, shards, column, paths),
        targets,
        class_names,
    )


def has_images(schema: "pa.Schema") -> bool:
    return _found_column(schema) is not None


def _found_column(schema: "pa.Schema") -> _ImageColumn | None:
    """That of a known name, else the only one of {bytes, path}."""
    found = {field.name: _parts(field.type) for field in schema}
    structs = [name for name, parts in found.items() if parts]
    for name in (*IMAGE_COLUMNS, *(structs if len(structs) == 1 else ())):
        parts = found.get(name)
        if parts is not None:
            return _ImageColumn(name, parts)
    return None


def _image_column(schema: "pa.Schema", source: Path) -> _ImageColumn:
    found = _found_column(schema)
    if found is not None:
        return found
    columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
    raise InputError(
        f"no image column in {source}, which has {columns}: name one 'image', of encoded bytes "
        "or of {bytes, path}; feature vectors are a column of lists of floats"
    )


def _parts(kind: "pa.DataType") -> tuple[str, ...] | None:
    """As in _ImageColumn; None: no bytes there."""
    from pyarrow import types

    if types.is_binary(kind) or types.is_large_binary(kind):
        return ()
    if not types.is_struct(kind):
        return None
    kinds = {field.name: field.type for field in kind}
    if "bytes" not in kinds or _parts(kinds["bytes"]) != ():
        return None
    return ("bytes", "path") if "path" in kinds else ("bytes",)


def _paths(shard: Shard, column: _ImageColumn) -> list[str | None]:
    """Each row's, without reading the images."""
    if "path" not in column.parts:
        return [None] * shard.n_rows
    import pyarrow.compute as pc

    with opened(shard.path) as file:
        images = file.read(columns=[f"{column.name}.path"], use_threads=False).column(0)
        return list(pc.struct_field(images, "path").to_pylist())


def _names(shards: Sequence[Shard], paths: Paths) -> tuple[str, ...]:
    given = [path for some in paths for path in some if path]
    if len(set(given)) == sum(shard.n_rows for shard in shards):
        return tuple(given)
    stems = [Path(shard.name).stem for shard in shards]
    if max(Counter(stems).values()) > 1:
        stems = [Path(shard.name).with_suffix("").as_posix() for shard in shards]
    return tuple(
        f"{utf8_name(stem)}/{row:06d}"
        for stem, shard in zip(stems, shards, strict=True)
        for row in range(shard.n_rows)
    )


def _fingerprint(source: Path, shards: Sequence[Shard], column: _ImageColumn, paths: Paths) -> str:
    """Of the files, their footers and the column; and of images that lie beside, where some may."""

    def files() -> Iterator[tuple[str, os.stat_result]]:
        for shard, some in zip(shards, paths, strict=True):
            yield shard.name, shard.path.stat()
            folder = shard.path.parent.resolve()
            for path in some if _may_lie_beside(shard, column) else ():
                beside = _beside(folder, path)
                if isinstance(beside, Path):
                    yield str(path), beside.stat()

    digest = hashlib.sha256(files_fingerprint(source, files()).encode())
    for shard in shards:
        digest.update(shard.footer_digest)
    digest.update(column.name.encode())
    return digest.hexdigest()


def _may_lie_beside(shard: Shard, column: _ImageColumn) -> bool:
    """Whether some row may have no bytes, by the footer."""
    chunks = (group.column(at) for group in shard.row_groups for at in range(group.num_columns))
    known = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column.leaves[0]]
    return any(each is None or not each.has_null_count or each.null_count for each in known)


def _images(shard: Shard, column: _ImageColumn, start: int) -> Iterator[Encoded]:
    import pyarrow.compute as pc

    folder = shard.path.parent.resolve()
    for images in rows_from(shard, column.leaves, start, _batch_size(shard)):
        contents = pc.struct_field(images, "bytes") if column.parts else images
        has_paths = "path" in column.parts
        paths = pc.struct_field(images, "path").to_pylist() if has_paths else repeat(None)
        for content, path in zip(contents, paths, strict=False):
            yield content.as_py() if content.is_valid else _beside(folder, path)


def _batch_size(shard: Shard) -> int:
    n_bytes = sum(int(group.total_byte_size) for group in shard.row_groups)
    return max(1, min(_MOST_ROWS, _BATCH_BYTES * shard.n_rows // max(1, n_bytes)))


def _beside(folder: Path, path: str | None) -> Encoded:
    return file_inside(folder, path) if path else BadImage("no image in this row")
