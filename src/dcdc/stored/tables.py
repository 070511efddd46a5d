"""A table of a Parquet file, by a schema of its columns, and with a check sum of its values."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dcdc.stored.reading import MIB, StoredFile, opened_regular
from dcdc.stored.schema import Unfit

_CHECKSUM = b"dcdc.checksum"
_MOST_ROWS_A_BYTE = 64
_MOST_EXPANDED, _ALWAYS = 200, 64 * MIB
"""Times the file's bytes, and what is read of any file. Every row has a name of its own, so however
well they are packed, more is no table of ours."""

_BY_THIS_THREAD = {"pre_buffer": False}
"""A thread of pyarrow that still holds a file of Python aborts a process that ends meanwhile."""


@dataclass(frozen=True)
class Column:
    type: pa.DataType
    is_needed: bool = True


@dataclass(frozen=True)
class StoredTable(StoredFile):
    schema: Mapping[str, Column]
    most_bytes: int = 4 * 1024 * MIB

    def read(self, path: Path) -> pa.Table:
        """The columns of the schema, without nulls."""
        try:
            with opened_regular(path, self.most_bytes) as file:
                room = _ALWAYS + _MOST_EXPANDED * file.seek(0, 2)
                footer = pq.ParquetFile(file, **_BY_THIS_THREAD)
                self._check_footer(footer.metadata, footer.schema_arrow, room)
                texts = [field.name for field in footer.schema_arrow if field.type == pa.string()]
                # A text that is repeated a million times lies there once, and is read so.
                rows = pq.ParquetFile(file, read_dictionary=texts, **_BY_THIS_THREAD)
                packed = rows.read(use_threads=False)
            packed.validate(full=True)
            if sum(_n_characters(packed[name]) for name in texts) > room:
                raise Unfit("", f"would fill more than {room:,} bytes")
            table = packed.cast(footer.schema_arrow)
            self._check_values(table)
            return table
        except Exception as error:  # pyarrow has no common one for damaged bytes
            raise self.damaged(path, error) from None

    def _check_footer(self, footer: pq.FileMetaData, columns: pa.Schema, room: int) -> None:
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        declared = sum(group.total_byte_size for group in groups)
        if declared > room or footer.num_rows > room // _MOST_EXPANDED * _MOST_ROWS_A_BYTE:
            raise Unfit("", f"declares {footer.num_rows:,} rows of {declared:,} bytes: too many")
        if not footer.num_rows:
            raise Unfit("", "has no rows")
        if len(set(columns.names)) < len(columns.names):
            raise Unfit("", "has two columns of one name")
        for name, column in self.schema.items():
            if name in columns.names:
                if columns.field(name).type != column.type:
                    found = columns.field(name).type
                    raise Unfit(f"column {name}", f"is of type {found}, not {column.type}")
            elif column.is_needed:
                raise Unfit(f"column {name}", "is missing")

    def _check_values(self, table: pa.Table) -> None:
        for name in self.schema:
            if name in table.column_names and table[name].null_count:
                raise Unfit(f"column {name}", "has rows without a value")
        stored = (table.schema.metadata or {}).get(_CHECKSUM)
        if stored is not None and stored != _checksum(table):
            raise Unfit("", "was altered: its check sum is of other rows")


def _n_characters(column: pa.ChunkedArray) -> int:
    return sum(
        pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
        for chunk in column.chunks
    )


def sealed_table(table: pa.Table) -> pa.Table:
    """With a check sum of its values."""
    return table.replace_schema_metadata({_CHECKSUM: _checksum(table)})


def _checksum(table: pa.Table) -> bytes:
    digest = hashlib.sha256()
    for field in table.schema:
        values = table[field.name]
        digest.update(f"{field.name}\0{field.type}\0{len(values)}\0".encode())
        if pa.types.is_string(field.type):
            texts = values.to_pylist()
            digest.update("\0".join(texts).encode() + str([len(text) for text in texts]).encode())
        else:
            digest.update(values.to_numpy().tobytes())
    return digest.hexdigest()[:16].encode()
