"""Rows as CSV, JSON lines or Parquet: pieces that are appended, and the table they become; and the
head of a `.npy` file that features are appended to."""

import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dcdc.runtime.atomic_files import atomic_file
from dcdc.runtime.csv_text import csv_lines

_ROW_GROUP = 2**16
_NPY_HEADER = 128


class Format(Protocol):
    def head(self, schema: pa.Schema) -> bytes:
        """What stands before the first row."""
        ...

    def piece(self, rows: pa.RecordBatch) -> bytes: ...

    def assemble(self, pieces: Path, table: Path) -> None:
        """A file of head and pieces becomes the table, which is there whole or not at all."""
        ...


class Csv:
    def head(self, schema: pa.Schema) -> bytes:
        return csv_lines([schema.names]).encode()

    def piece(self, rows: pa.RecordBatch) -> bytes:
        columns = [_as_text(column) for column in rows.columns]
        return csv_lines(zip(*columns, strict=True)).encode()

    def assemble(self, pieces: Path, table: Path) -> None:
        pieces.rename(table)


class JsonLines:
    def head(self, schema: pa.Schema) -> bytes:  # noqa: ARG002 - every line names its fields
        return b""

    def piece(self, rows: pa.RecordBatch) -> bytes:
        columns = [_as_values(column) for column in rows.columns]
        names = rows.schema.names
        lines = (
            json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)
            for values in zip(*columns, strict=True)
        )
        return "".join(f"{line}\n" for line in lines).encode()

    def assemble(self, pieces: Path, table: Path) -> None:
        pieces.rename(table)


class Parquet:
    """Pieces are messages of an Arrow stream: nothing can be appended to a Parquet file."""

    def head(self, schema: pa.Schema) -> bytes:
        return bytes(schema.serialize())

    def piece(self, rows: pa.RecordBatch) -> bytes:
        return bytes(rows.serialize()) if rows.num_rows else b""

    def assemble(self, pieces: Path, table: Path) -> None:
        with atomic_file(table) as temporary, pa.OSFile(str(pieces)) as file:
            stream = pa.ipc.open_stream(file)
            with pq.ParquetWriter(temporary, stream.schema, compression="zstd") as writer:
                waiting: list[pa.RecordBatch] = []
                for batch in stream:
                    waiting.append(batch)
                    if sum(each.num_rows for each in waiting) >= _ROW_GROUP:
                        writer.write_table(pa.Table.from_batches(waiting))
                        waiting.clear()
                if waiting:
                    writer.write_table(pa.Table.from_batches(waiting))
        pieces.unlink()


FORMATS: dict[str, Format] = {".csv": Csv(), ".parquet": Parquet(), ".jsonl": JsonLines()}


def _as_text(column: pa.Array) -> list[Any]:
    if pa.types.is_boolean(column.type):
        return [None if value is None else str(value).lower() for value in column.to_pylist()]
    if pa.types.is_floating(column.type) and not column.null_count:
        # The shortest that reads back as the same float32.
        return list(np.asarray(column).astype(str).tolist())
    return list(column.to_pylist())


def _as_values(column: pa.Array) -> list[Any]:
    if pa.types.is_floating(column.type) and not column.null_count:
        return [float(text) for text in _as_text(column)]
    return list(column.to_pylist())


def npy_header(n_rows: int, n_features: int) -> bytes:
    """Of N x D float32, format 1.0: rows can be appended before their number is known."""
    layout = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n_rows}, {n_features}), }}"
    start = b"\x93NUMPY\x01\x00" + (_NPY_HEADER - 10).to_bytes(2, "little")
    return start + layout.encode().ljust(_NPY_HEADER - len(start) - 1) + b"\n"
