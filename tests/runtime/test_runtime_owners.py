import os
import time

import pytest

from dcdc.runtime.atomic_files import atomic_file
from dcdc.runtime.owners import is_left, own_mark


@pytest.fixture
def dead(forked):
    """The mark of a process that has ended."""
    process = forked(lambda: None)
    process.join()
    return f"{process.pid}-{own_mark().partition('-')[2]}"


def test_what_the_living_make_is_not_left(tmp_path, dead):
    (tmp_path / "file").write_text("")
    assert not is_left(own_mark(), tmp_path / "file")
    assert not is_left(f"1-{own_mark().partition('-')[2]}", tmp_path / "file")
    assert is_left(dead, tmp_path / "file")


@pytest.mark.parametrize("mark", ["12-01234567", "12"])
def test_of_processes_elsewhere_what_nobody_wrote_to_for_a_day(tmp_path, mark):
    file = tmp_path / "file"
    file.write_text("")
    assert not is_left(mark, file)
    assert not is_left(mark, tmp_path / "gone")
    long_ago = time.time() - 25 * 3600
    os.utime(file, (long_ago, long_ago))
    assert is_left(mark, file)


def test_who_writes_a_file_clears_what_the_dead_left_of_it(tmp_path, dead):
    living = f"1-{dead[-8:]}"
    for begins in (f".e.{dead}", f".e.{living}", f".f.{dead}"):
        (tmp_path / f"{begins}.partial.pt2").write_text("half")
    with atomic_file(tmp_path / "e.pt2") as temporary:
        temporary.write_text("whole")
    left = {f".e.{living}.partial.pt2", f".f.{dead}.partial.pt2", "e.pt2"}
    assert {path.name for path in tmp_path.iterdir()} == left
