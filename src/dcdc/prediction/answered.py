"""What became of some rows of a source, and the bytes by which another process hears of it.

Shapes: R rows read of a source, N of them kept, D features.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LEFT_OUT = -1
"""In the place of a cluster, where an image could not be read."""


@dataclass(frozen=True, eq=False)
class Answered:
    rows: pa.RecordBatch
    """N"""
    features: NDArray[np.float32]
    """N x D"""
    clusters: NDArray[np.int32]
    """R, or LEFT_OUT; outliers have the number after the last cluster's."""
    skipped: tuple[tuple[int, str], ...]
    """Rows of the source, and why."""


def packed(answered: Answered) -> bytes:
    arrays, rows = io.BytesIO(), bytes(answered.rows.serialize())
    np.save(arrays, answered.features, allow_pickle=False)
    np.save(arrays, answered.clusters, allow_pickle=False)
    parts = (rows, arrays.getvalue(), json.dumps(answered.skipped).encode())
    lengths = np.array([len(part) for part in parts], "<i8").tobytes()
    return lengths + b"".join(parts)


def unpacked(content: bytes, schema: pa.Schema) -> Iterator[Answered]:
    stream = io.BytesIO(content)
    while head := stream.read(24):
        rows, arrays, skipped = (stream.read(n) for n in np.frombuffer(head, "<i8").tolist())
        held = io.BytesIO(arrays)
        yield Answered(
            rows=pa.ipc.read_record_batch(pa.py_buffer(rows), schema),
            features=np.load(held, allow_pickle=False),
            clusters=np.load(held, allow_pickle=False),
            skipped=tuple((int(row), str(why)) for row, why in json.loads(skipped)),
        )
