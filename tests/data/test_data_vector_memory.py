"""Vectors of many images are read in little memory, whatever they lie in.

Resident memory is read from the kernel, in a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

N_ROWS, WIDTH = 80_000, 512  # 164 MB in float32
BLOCK = 4_000

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="resident memory is read from /proc, which this system lacks",
)

SCRIPT = """
import json, re, sys

import pyarrow.csv, pyarrow.parquet, safetensors  # their own weight is not that of the vectors

from dcdc.data import load_data


def resident(key):
    return int(re.search(key + r":\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024


before = resident("VmRSS")
found = load_data(sys.argv[1])
peak = resident("VmHWM") - before
rows = [0, 1, found.n_images // 2, found.n_images - 1]
told = {"peak": peak, "shape": found.vectors.shape, "dtype": str(found.vectors.dtype)}
print(json.dumps({**told, "rows": found.vectors[rows, :2].tolist()}))
"""


def measured(path, tmp_path) -> dict:
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=os.environ | {"DCDC_DATA": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def blocks(n_rows, width, dtype):
    """Each row begins with its number, in two digits that float16 holds exactly."""
    random = np.random.default_rng(0)
    block = random.normal(size=(BLOCK, width)).astype(dtype)
    for first in range(0, n_rows, BLOCK):
        numbers = np.arange(first, first + BLOCK)
        block[:, 0], block[:, 1] = numbers // 1000, numbers % 1000
        yield block


def write_npy(path, n_rows, width, dtype, order="C"):
    array = np.lib.format.open_memmap(
        path, "w+", dtype, (n_rows, width), fortran_order=order == "F"
    )
    for at, block in enumerate(blocks(n_rows, width, dtype)):
        array[at * BLOCK : (at + 1) * BLOCK] = block
    return path


def write_safetensors(path, n_rows, width, dtype):
    about = {"dtype": "F32", "shape": [n_rows, width], "data_offsets": [0, n_rows * width * 4]}
    header = json.dumps({"features": about}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for block in blocks(n_rows, width, dtype):
            file.write(block.tobytes())
    return path


def write_parquet(path, n_rows, width, dtype, *, fixed=False):
    value = pa.from_numpy_dtype(dtype)
    kind = pa.list_(value, width) if fixed else pa.list_(value)
    with pq.ParquetWriter(path, pa.schema({"embedding": kind}), use_dictionary=False) as writer:
        for block in blocks(n_rows, width, dtype):
            flat = pa.array(block.ravel())
            offsets = np.arange(0, len(flat) + 1, width, np.int32)
            lists = (
                pa.FixedSizeListArray.from_arrays(flat, width)
                if fixed
                else pa.ListArray.from_arrays(offsets, flat)
            )
            writer.write_table(pa.table({"embedding": lists}))
    return path


def write_csv(path, n_rows, width, dtype):
    names = [f"f{at}" for at in range(width)]
    schema = pa.schema({name: pa.from_numpy_dtype(dtype) for name in names})
    with pa.csv.CSVWriter(path, schema) as writer:
        for block in blocks(n_rows, width, dtype):
            writer.write_table(pa.table([pa.array(column) for column in block.T], schema=schema))
    return path


def check(found, n_rows, width, dtype="float32"):
    assert found["shape"] == [n_rows, width]
    assert found["dtype"] == dtype
    numbers = [1000 * high + low for high, low in found["rows"]]
    assert numbers == [0, 1, n_rows // 2, n_rows - 1]


@pytest.mark.parametrize(
    ("name", "write", "dtype", "options"),
    [
        ("a.npy", write_npy, np.float32, {}),
        pytest.param("a.npy", write_npy, np.float64, {}, marks=pytest.mark.slow),
        pytest.param("a.npy", write_npy, np.float32, {"order": "F"}, marks=pytest.mark.slow),
        ("a.safetensors", write_safetensors, np.float32, {}),
        ("a.parquet", write_parquet, np.float32, {}),
        pytest.param(
            "a.parquet", write_parquet, np.float32, {"fixed": True}, marks=pytest.mark.slow
        ),
    ],
)
def test_vectors_are_read_in_little_memory(tmp_path, name, write, dtype, options):
    path = write(tmp_path / name, N_ROWS, WIDTH, dtype, **options)
    found = measured(path, tmp_path)
    path.unlink()
    check(found, N_ROWS, WIDTH)
    assert found["peak"] < N_ROWS * WIDTH * 4 / 2


@pytest.mark.slow
def test_a_table_is_read_in_little_memory(tmp_path):
    path = write_csv(tmp_path / "a.csv", 64_000, 300, np.float32)
    n_bytes = path.stat().st_size
    found = measured(path, tmp_path)
    path.unlink()
    check(found, 64_000, 300)
    assert n_bytes > 200e6
    assert found["peak"] < n_bytes / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "write", "dtype", "options"),
    [
        ("a.npy", write_npy, np.float32, {}),
        ("a.parquet", write_parquet, np.float16, {"fixed": True}),
    ],
)
def test_a_million_rows_are_read_in_little_memory(tmp_path, name, write, dtype, options):
    """3.1 GB in float32, 1.5 GB in float16: room is given back before the next one."""
    path = write(tmp_path / name, 1_000_000, 768, dtype, **options)
    found = measured(path, tmp_path)
    path.unlink()
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    check(found, 1_000_000, 768, np.dtype(dtype).name)
    assert found["peak"] < 150e6
