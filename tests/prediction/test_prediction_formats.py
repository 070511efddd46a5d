"""The three formats say the same, whatever a file is called."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dcdc.prediction.formats import FORMATS, npy_header
from dcdc.runtime.csv_text import unguarded

NAMES = ["plain.png", 'a "quoted", one\nand\ta line', "=1+1", "\N{CAT FACE}", "\r", " , "]
SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("cluster", pa.int32()),
        ("confidence", pa.float32()),
        ("out_of_distribution", pa.bool_()),
        ("score", pa.float32()),
    ]
)


def block(names, told=True):
    columns = [
        pa.array(names, pa.string()),
        pa.array(range(len(names)), pa.int32()),
        pa.array([1 / 3, 0.1, 1.0, 1e-9, 0.5, 0.99999994][: len(names)], pa.float32()),
        pa.array([told or None] * len(names), pa.bool_()),
        pa.array([0.7 if told else None] * len(names), pa.float32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                "name": unguarded(row["name"]),
                "cluster": int(row["cluster"]),
                "confidence": float(row["confidence"]),
                "out_of_distribution": {"true": True, "": None}[row["out_of_distribution"]],
                "score": float(row["score"]) if row["score"] else None,
            }
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("suffix", FORMATS)
def test_pieces_become_a_table_that_reads_back(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr("dcdc.prediction.formats._ROW_GROUP", 4)
    blocks = [block(NAMES), block([]), block(NAMES[:2], told=False), block(NAMES)]
    one = FORMATS[suffix]
    pieces, table = tmp_path / "pieces", tmp_path / f"table{suffix}"
    pieces.write_bytes(one.head(SCHEMA) + b"".join(map(one.piece, blocks)))
    one.assemble(pieces, table)
    assert [path.name for path in tmp_path.iterdir()] == [table.name]
    found, wanted = read(table), pa.Table.from_batches(blocks).to_pylist()
    assert len(found) == 14
    for row, expected in zip(found, wanted, strict=True):
        assert {**row, "confidence": 0, "score": 0} == {**expected, "confidence": 0, "score": 0}
        assert pa.scalar(row["confidence"], pa.float32()).as_py() == expected["confidence"]
        assert (row["score"] is None) == (expected["score"] is None)


def test_numbers_are_as_short_as_they_can_be():
    text = FORMATS[".csv"].piece(block(NAMES[:2])).decode()
    assert text.startswith("plain.png,0,0.33333334,true,0.7\n")
    line = FORMATS[".jsonl"].piece(block(NAMES[:1])).decode()
    assert '"confidence": 0.33333334, "out_of_distribution": true, "score": 0.7}' in line


def test_numpy_reads_it_whatever_the_number_of_rows():
    for n_rows in (0, 1, 12):
        values = np.arange(n_rows * 3, dtype="<f4").reshape(n_rows, 3)
        file = io.BytesIO(npy_header(n_rows, 3) + values.tobytes())
        assert np.array_equal(np.load(file), values)
    assert len({len(npy_header(n, d)) for n in (0, 10**12) for d in (1, 4096)}) == 1
