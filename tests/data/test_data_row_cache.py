"""Builds that are killed, cut short, damaged or met by another process end with the right rows."""

import json
import multiprocessing
import os
import resource
import signal
import time
import zlib

import numpy as np
import pytest

from dcdc.data import cache_folder, row_cache
from dcdc.data.row_cache import Block, RowSource, cached_rows
from dcdc.errors import InputError

N_ROWS, PER_BLOCK, SHAPE = 50, 8, (8, 8, 3)
ROWS = np.random.default_rng(0).integers(0, 256, (N_ROWS, *SHAPE), np.uint8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decoded" / "key"


class Source:
    """Counts what is asked of it; `bad` rows are left out, `stop_at` ends it with a fault."""

    def __init__(self, bad=(), stop_at=None, pause=0.0):
        self.bad, self.stop_at, self.pause = bad, stop_at, pause
        self.starts, self.n_made = [], 0

    def blocks(self, start):
        self.starts.append(start)
        for first in range(start, N_ROWS, PER_BLOCK):
            if self.stop_at is not None and first >= self.stop_at:
                raise KeyboardInterrupt
            time.sleep(self.pause)
            rows = range(first, min(first + PER_BLOCK, N_ROWS))
            self.n_made += len(rows)
            good = [row for row in rows if row not in self.bad]
            skipped = tuple((row, f"bad {row}") for row in rows if row in self.bad)
            yield Block(ROWS[good], n_read=len(rows), skipped=skipped)

    def rows(self, **how):
        return cached_rows(RowSource("key", N_ROWS, SHAPE, self.blocks), **how)


def test_rows_come_back_mapped_and_are_made_once():
    progress = []
    found = Source().rows(progress=lambda done, total: progress.append((done, total)))
    assert isinstance(found.images, np.memmap)
    assert not found.images.flags.writeable
    assert np.array_equal(found.images, ROWS)
    assert progress == [(min(n, N_ROWS), N_ROWS) for n in range(8, 57, 8)]
    again = Source()
    assert np.array_equal(again.rows().images, ROWS)
    assert again.starts == []


def test_an_interrupted_build_goes_on_where_it_stood():
    with pytest.raises(KeyboardInterrupt):
        Source(stop_at=24).rows()
    rest = Source()
    assert np.array_equal(rest.rows().images, ROWS)
    assert rest.starts == [24]


def test_rows_left_out_are_recorded_through_an_interruption_and_again_later():
    bad = (0, 9, 49)
    with pytest.raises(KeyboardInterrupt):
        Source(bad, stop_at=24).rows()
    wanted = tuple((row, f"bad {row}") for row in bad)
    for _ in range(2):
        found = Source(bad).rows()
        assert found.skipped == wanted
        assert np.array_equal(found.images, np.delete(ROWS, bad, axis=0))


def test_a_source_without_a_good_row_is_an_empty_array():
    found = Source(bad=range(N_ROWS)).rows()
    assert found.images.shape == (0, *SHAPE)
    assert len(found.skipped) == N_ROWS


def refuse(row, why):
    raise InputError(f"row {row}: {why}")


def test_a_refusal_ends_the_build_and_is_repeated_by_a_finished_one():
    with pytest.raises(InputError, match="row 20: bad 20"):
        Source(bad=(20,)).rows(on_skip=refuse)
    patient = Source(bad=(20,))
    assert len(patient.rows().images) == N_ROWS - 1
    assert patient.starts == [16]  # the blocks before the refused one were kept
    with pytest.raises(InputError, match="row 20: bad 20"):
        Source(bad=(20,)).rows(on_skip=refuse)


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    path.write_bytes(content)


FAULTS = {
    "a flipped byte at the start": lambda cache: flip(cache / "rows", 5),
    "a flipped byte at the end": lambda cache: flip(cache / "rows", -1),
    "rows cut short": lambda cache: os.truncate(cache / "rows", 1000),
    "rows of another length": lambda cache: os.truncate(cache / "rows", 0),
    "rows gone": lambda cache: (cache / "rows").unlink(),
    "journal gone": lambda cache: (cache / "journal").unlink(),
    "journal cut short": lambda cache: os.truncate(cache / "journal", 300),
    "journal garbled": lambda cache: (cache / "journal").write_bytes(b"\xff\xfe{]"),
    "done garbled": lambda cache: (cache / "done").write_bytes(b"\xff{"),
    "done gone": lambda cache: (cache / "done").unlink(),
    "all gone": lambda cache: [file.unlink() for file in list(cache.iterdir())],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_cache_is_found_and_made_again(cache, fault):
    Source().rows()
    FAULTS[fault](cache)
    assert np.array_equal(Source().rows().images, ROWS)
    trusted = Source()
    assert np.array_equal(trusted.rows().images, ROWS)
    assert trusted.starts == []


def test_a_file_that_was_only_touched_is_checked_not_made_again(cache):
    Source().rows()
    os.utime(cache / "rows")
    for _ in range(2):
        again = Source()
        assert np.array_equal(again.rows().images, ROWS)
        assert again.starts == []


def test_damage_in_an_unfinished_build_costs_only_what_follows_it(cache):
    with pytest.raises(KeyboardInterrupt):
        Source(stop_at=40).rows()
    flip(cache / "rows", 17 * ROWS[0].nbytes)
    rest = Source()
    assert np.array_equal(rest.rows().images, ROWS)
    assert rest.starts == [16]


def test_another_number_of_rows_is_another_build(cache):
    Source().rows()
    header, *rest = (cache / "journal").read_text().splitlines()
    changed = json.loads(header) | {"n_rows": N_ROWS + 1}
    (cache / "journal").write_text("\n".join([json.dumps(changed), *rest]) + "\n")
    assert np.array_equal(Source().rows().images, ROWS)


def test_a_cache_that_version_0_1_left_is_made_again(cache):
    Source().rows()
    header = json.dumps({"format": 1, "n_rows": N_ROWS, "shape": SHAPE})
    block = json.dumps({"read": 50, "kept": 50, "crc": zlib.crc32(ROWS.tobytes()), "skipped": []})
    (cache / "journal").write_text(f"{header}\n{block}\n")
    rows, journal = (cache / "rows").stat(), zlib.crc32((cache / "journal").read_bytes())
    stamp = {"bytes": rows.st_size, "changed": rows.st_mtime_ns, "journal": journal}
    (cache / "done").write_text(json.dumps(stamp))
    again = Source()
    assert np.array_equal(again.rows().images, ROWS)
    assert again.starts == [0]


def test_a_process_that_maps_damaged_rows_is_not_disturbed_by_the_rebuild(cache):
    mapped = Source().rows().images
    os.utime(cache / "rows", (1, 1))
    flip(cache / "rows", 3)
    assert np.array_equal(Source().rows().images, ROWS)
    assert mapped.shape == ROWS.shape
    assert np.array_equal(mapped[1:], ROWS[1:])  # its own pages, still readable


def build_slowly(started):
    started.set()
    Source(pause=0.05).rows()


def started_process(target):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=target, args=(started,))
    process.start()
    assert started.wait(30)
    return process


def test_a_build_that_is_killed_is_resumed_to_the_right_array(cache):
    process = started_process(build_slowly)
    wait_for_blocks(cache, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (cache / "done").exists()
    rest = Source()
    assert np.array_equal(rest.rows().images, ROWS)
    assert rest.starts[0] >= 16


def test_two_at_once_share_one_build(cache):
    process = started_process(build_slowly)
    wait_for_blocks(cache, 1)
    waits, ours = [], Source()
    found = ours.rows(on_wait=lambda: waits.append(1))
    process.join()
    assert process.exitcode == 0
    assert np.array_equal(found.images, ROWS)
    assert (waits, ours.starts) == ([1], [])


def wait_for_blocks(cache, n_blocks):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        journal = cache / "journal"
        if journal.exists() and len(journal.read_text().splitlines()) > n_blocks:
            return
        time.sleep(0.005)
    raise AssertionError("the build did not begin")


def test_a_full_disk_gives_the_room_back_and_says_what_to_do(cache):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20 * ROWS[0].nbytes, hard))
    try:
        with pytest.raises(InputError, match=r"cannot keep decoded images in .*DCDC_DATA"):
            Source().rows()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, was)
    assert list(cache.iterdir()) == []
    assert np.array_equal(Source().rows().images, ROWS)


def test_a_set_larger_than_the_disk_is_refused_before_it_is_begun():
    huge = RowSource("key", 10**15, SHAPE, Source().blocks)
    with pytest.raises(InputError, match=r"need .* GB, .* free: make room"):
        cached_rows(huge)


def test_a_cache_folder_that_cannot_be_made_is_one_clear_line(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot keep decoded images in .*DCDC_DATA"):
        Source().rows()


def test_the_cache_folder_follows_the_variable_and_the_home(monkeypatch):
    monkeypatch.setenv("DCDC_DATA", "~/elsewhere")
    assert cache_folder.cache_folder() == cache_folder.Path.home() / "elsewhere"
    monkeypatch.delenv("DCDC_DATA")
    assert cache_folder.cache_folder().name == "dcdc"


def test_the_check_sums_are_read_when_the_time_stamp_is_not_believed(cache, monkeypatch):
    Source().rows()
    checks = []
    real = row_cache._Build.n_good_blocks
    monkeypatch.setattr(
        row_cache._Build, "n_good_blocks", lambda build: checks.append(1) or real(build)
    )
    Source().rows()
    assert checks == []
    os.utime(cache / "rows")
    Source().rows()
    assert checks == [1]
