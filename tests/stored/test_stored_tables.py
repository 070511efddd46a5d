import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dcdc.run_folder import RunFolder
from dcdc.stored.files import ASSIGNMENTS
from dcdc.stored.reading import DamagedFileError

NAMES = [f"ü-{number}.png" for number in range(40)]
CLUSTERS = np.arange(40) % 3


@pytest.fixture
def file(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_assignments(NAMES, CLUSTERS, np.full(40, 0.5), ["a", "b"] * 20)
    return folder.assignments_file


def columns(**changes) -> pa.Table:
    table = {
        "name": pa.array(NAMES),
        "cluster": pa.array(CLUSTERS, pa.int32()),
        "confidence": pa.array(np.full(40, 0.5), pa.float32()),
    }
    return pa.table({k: v for k, v in (table | changes).items() if v is not None})


def test_the_rows_come_back_with_a_check_sum_and_without(file):
    assert ASSIGNMENTS.read(file)["name"].to_pylist() == NAMES
    assert ASSIGNMENTS.read(file)["target"].to_pylist() == ["a", "b"] * 20
    pq.write_table(columns(), file)  # as older versions wrote it
    assert ASSIGNMENTS.read(file)["cluster"].to_numpy().tolist() == CLUSTERS.tolist()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cluster": None}, "column cluster is missing"),
        ({"cluster": pa.array(CLUSTERS.astype(float))}, "column cluster is of type double"),
        ({"name": pa.array(range(40))}, "column name is of type int64, not string"),
        ({"name": pa.array([None, *NAMES[1:]])}, "column name has rows without a value"),
        ({"target": pa.array([["x"]] * 40)}, "column target is of type list"),
    ],
)
def test_columns_that_do_not_fit_are_named(file, changes, told):
    pq.write_table(columns(**changes), file)
    with pytest.raises(DamagedFileError, match=told) as caught:
        ASSIGNMENTS.read(file)
    assert str(file) in str(caught.value)
    assert str(caught.value).endswith("restore it from a copy, or train again")


def same_or_refused(file) -> bool:
    try:
        found = ASSIGNMENTS.read(file)
    except DamagedFileError as told:
        assert len(str(told).splitlines()) == 1  # noqa: PT017
        return False
    assert found["name"].to_pylist() == NAMES
    assert found["cluster"].to_numpy().tolist() == CLUSTERS.tolist()
    assert found["confidence"].to_pylist() == [0.5] * 40
    return True


@pytest.mark.parametrize("step", [67, pytest.param(1, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_a_row(file, step):
    whole = file.read_bytes()
    tried = range(0, 8 * len(whole), step)
    n_same = 0
    for at in tried:
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        file.write_bytes(flipped)
        n_same += same_or_refused(file)
    assert n_same < len(tried)


def test_torn_files_and_other_things_are_one_line(file):
    whole = file.read_bytes()
    for content in (b"", b"PAR1", whole[:-9], whole[: len(whole) // 2], bytes(100), b"PAR1" * 9):
        file.write_bytes(content)
        assert not same_or_refused(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DamagedFileError, match="is a pipe"):
        ASSIGNMENTS.read(file)


def test_a_name_that_is_repeated_without_end_is_not_unpacked(file):
    n_rows = 1000
    name = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), ["x" * 100_000])
    bomb = pa.table(
        {
            "name": name.cast(pa.string()),
            "cluster": pa.array([0] * n_rows, pa.int32()),
            "confidence": pa.array([1.0] * n_rows, pa.float32()),
        }
    )
    pq.write_table(bomb, file, compression="zstd")
    assert file.stat().st_size < 100_000
    with pytest.raises(DamagedFileError, match=r"would fill more than|too many"):
        ASSIGNMENTS.read(file)


def test_more_rows_than_its_bytes_can_name_are_refused(file):
    n_rows = 30_000_000
    zeros = pa.repeat(pa.scalar(0, pa.int32()), n_rows)
    pq.write_table(pa.table({"cluster": zeros}), file)
    with pytest.raises(DamagedFileError, match=r"declares 30,000,000 rows"):
        ASSIGNMENTS.read(file)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed on Linux")
def test_no_thread_is_left_that_could_abort_a_process_as_it_ends(file):
    script = f"""
import os
from pathlib import Path
from dcdc.stored.files import ASSIGNMENTS
before = os.listdir("/proc/self/task")
ASSIGNMENTS.read(Path({str(file)!r}))
print(len(os.listdir("/proc/self/task")) - len(before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"0"
