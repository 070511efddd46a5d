import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from dcdc.data import streaming
from dcdc.data.streaming import ArrayRows, CudaLane, FileRows, JoinedRows, ReadAhead, open_rows
from dcdc.errors import InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 4, 5, 3), np.uint8)
WANTED = np.array([19, 3, 4, 5, 0, 0, 18, 17])
PATIENCE = 10.0


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "a.npy", PIXELS)
    return tmp_path / "a.npy"


def read(rows, wanted=WANTED):
    into = np.zeros((len(wanted) + 1, *PIXELS.shape[1:]), np.uint8)
    rows.read(wanted, into, np.arange(1, len(wanted) + 1))
    assert not into[0].any()
    return into[1:]


VIEWS = {
    "as stored": (lambda a: a, FileRows),
    "rows from the third on": (lambda a: a[3:], FileRows),
    "every other row": (lambda a: a[::2], FileRows),
    "rows from the last": (lambda a: a[::-1], FileRows),
    "planes of columns": (lambda a: a.reshape(20, 3, 4, 5).transpose(0, 3, 2, 1), FileRows),
    "planes of lines": (lambda a: a.reshape(20, 3, 4, 5).transpose(0, 2, 3, 1), FileRows),
    "lines of each row": (lambda a: a[:, 1:3], FileRows),
    "one channel": (lambda a: a.reshape(20, 4, 15, 1), FileRows),
    "a plain view": (lambda a: np.asarray(a).view(), FileRows),
    "mirrored": (lambda a: a[:, :, ::-1], ArrayRows),
    "cut out": (lambda a: a[:, :, 1:3], ArrayRows),
    "a copy": (np.array, ArrayRows),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_rows_of_any_view_are_read_past_the_map_where_they_lie_together(file, view, mode):
    look, kind = VIEWS[view]
    images = look(np.load(file, mmap_mode=mode))
    rows = open_rows(images)
    assert type(rows) is kind
    wanted = WANTED % len(images)
    into = np.zeros((9, *images.shape[1:]), np.uint8)
    places = np.array([8, 1, 2, 3, 5, 4, 6, 7])  # some rows next to each other in both, one not
    rows.read(wanted, into, places)
    assert np.array_equal(into[places], images[wanted])
    assert not into[0].any()


def test_a_file_is_read_from_the_byte_at_which_its_map_begins(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(70_001) + PIXELS.tobytes())
    images = np.memmap(tmp_path / "a.bin", np.uint8, "r", 70_001, PIXELS.shape)
    rows = open_rows(images)
    assert isinstance(rows, FileRows)
    assert np.array_equal(read(rows), PIXELS[WANTED])


def test_what_was_written_to_a_map_is_read(file):
    shared, private = np.load(file, mmap_mode="r+"), np.load(file, mmap_mode="c")
    shared[5] = 7
    private[5] = 8
    assert (read(open_rows(shared), np.array([5])) == 7).all()
    assert (read(open_rows(private), np.array([5])) == 8).all()


def remove(path):
    path.unlink()


def replace(path):
    np.save(path.with_name("b.npy"), 255 - PIXELS)
    path.with_name("b.npy").replace(path)


@pytest.mark.parametrize("change", [remove, replace])
@pytest.mark.parametrize("after_opening", [True, False])
def test_a_map_is_read_as_it_was_when_its_name_is_gone_or_another_files(
    file, change, after_opening
):
    images = np.load(file, mmap_mode="r")
    if after_opening:
        rows = open_rows(images)
        change(file)
    else:
        change(file)
        rows = open_rows(images)
    assert np.array_equal(read(rows), PIXELS[WANTED])


def test_a_file_cut_short_is_one_clear_line(file):
    """A map would end the process here."""
    rows = open_rows(np.load(file, mmap_mode="r"))
    os.truncate(file, file.stat().st_size - 1)
    assert np.array_equal(read(rows, WANTED[1:]), PIXELS[WANTED[1:]])
    with pytest.raises(InputError, match=r"a\.npy was cut short .*: put it back .*resume"):
        read(rows)


def test_a_disk_that_fails_is_one_clear_line(file, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    rows = open_rows(np.load(file, mmap_mode="r"))
    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(InputError, match=r"cannot read .*a\.npy: Input/output error"):
        read(rows)


def test_a_read_that_brings_less_is_taken_up_where_it_ended(file, monkeypatch):
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, into, at: whole(file, [into[0][:7]], at))
    assert np.array_equal(read(open_rows(np.load(file, mmap_mode="r"))), PIXELS[WANTED])


def test_neighbours_are_one_read(file, monkeypatch):
    sizes = []
    whole = os.preadv
    rows = open_rows(np.load(file, mmap_mode="r"))
    monkeypatch.setattr(os, "preadv", lambda *a: sizes.append(len(a[1][0]) // 60) or whole(*a))
    assert np.array_equal(read(rows), PIXELS[WANTED])
    assert sizes == [1, 3, 1, 1, 1, 1]


def test_systems_without_such_reads_use_the_map(file, monkeypatch):
    monkeypatch.delattr(os, "preadv")
    assert np.array_equal(read(open_rows(np.load(file, mmap_mode="r"))), PIXELS[WANTED])


OPEN_FILES = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="open files are counted in /proc")
def test_files_are_closed_with_their_rows(file):
    def n_open() -> int:
        """Other tests' files may be closed meanwhile."""
        found = 0
        for descriptor in OPEN_FILES.iterdir():
            with suppress(OSError):
                found += descriptor.readlink() == file
        return found

    rows = open_rows(images := np.load(file, mmap_mode="r"))
    assert n_open() > 0
    del rows, images
    assert n_open() == 0


def test_narrow_indices_reach_beyond_two_gigabytes(tmp_path):
    images = np.lib.format.open_memmap(
        tmp_path / "a.npy", "w+", np.uint8, (2200, 1000, 1000, 1)
    )  # sparse: takes no disk
    images[2199, 0, 0] = 9
    found = JoinedRows([images]).gather(np.array([2199], np.int32))
    assert found[0, 0, 0] == 9


@pytest.mark.parametrize("outside", [-1, 40])
def test_a_row_that_is_not_there_is_refused(outside):
    with pytest.raises(IndexError, match=f"no image {outside} among 40"):
        JoinedRows([PIXELS, PIXELS]).gather(np.array([0, outside]))


class TurnSlot:
    """Stands for pinned memory and its twin on a device: both are used again and again."""

    def __init__(self):
        self.host, self.device = np.zeros(3), torch.zeros(3)
        self.is_filled = False

    def fill(self, n_rows, read):
        assert not self.is_filled, "filled twice"
        self.device.fill_(-1)
        read(self.host[:n_rows])
        self.device[:n_rows] = torch.from_numpy(self.host[:n_rows])
        self.n_rows, self.is_filled = n_rows, True

    def take(self):
        assert self.is_filled, "taken before it was filled"
        self.is_filled = False
        return self.device[: self.n_rows].clone()


BATCHES = [np.arange(3) + 10 * k for k in range(30)]


def copy_indices(wanted, into):
    into[:] = wanted


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = threading.active_count()
    yield
    wait_until(lambda: threading.active_count() <= before)


@pytest.fixture(autouse=True)
def nothing_waits_for_ever():
    """A wait that should have ended is a failure, not a suite that hangs."""

    def give_up(*_):
        raise TimeoutError("still waiting")

    if hasattr(signal, "SIGALRM"):
        before = signal.signal(signal.SIGALRM, give_up)
        signal.alarm(20)
        yield
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    else:
        yield


def wait_until(happened):
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


@pytest.mark.parametrize("n_slots", [1, 2, 3])
def test_batches_come_in_order_from_slots_used_in_turn(n_slots):
    batches = [*BATCHES, np.array([5])]
    ahead = ReadAhead(copy_indices, batches, [TurnSlot() for _ in range(n_slots)])
    found = []
    for k, batch in enumerate(batches):
        assert ahead.upcoming is batch
        if k % 7 == 0:
            time.sleep(0.002)  # let it read ahead
        found.append(ahead.take())
    assert ahead.upcoming is None
    assert all(np.array_equal(f, b) for f, b in zip(found, batches, strict=True))


def test_it_reads_ahead_as_far_as_there_are_slots():
    seen = []
    ahead = ReadAhead(lambda wanted, _: seen.append(wanted[0]), BATCHES, [TurnSlot()])
    wait_until(lambda: seen == [0])
    ahead.take()
    wait_until(lambda: seen == [0, 10])
    time.sleep(0.02)
    assert seen == [0, 10]


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("bad"), SystemExit(3)])
@pytest.mark.parametrize("at", [0, 2, 29])
def test_an_error_while_reading_comes_in_its_batchs_place(error, at):
    def failing(wanted, into):
        if wanted[0] == 10 * at:
            raise error
        copy_indices(wanted, into)

    ahead = ReadAhead(failing, BATCHES, [TurnSlot(), TurnSlot()])
    for batch in BATCHES[:at]:
        assert np.array_equal(ahead.take(), batch)
    with pytest.raises(type(error)) as found:
        ahead.take()
    assert found.value is error
    assert ahead.upcoming is None


def test_after_an_interruption_nothing_comes_out_of_order(monkeypatch):
    ahead = ReadAhead(copy_indices, BATCHES, [TurnSlot(), TurnSlot()])
    ahead.take()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TurnSlot, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ahead.take()
    assert ahead.upcoming is None


class Gate:
    """Reads that wait until they are let through."""

    def __init__(self):
        self.is_reading, self.may_go_on = threading.Event(), threading.Event()
        self.n_reads = 0

    def read(self, wanted, into):
        self.n_reads += 1
        self.is_reading.set()
        assert self.may_go_on.wait(PATIENCE)
        copy_indices(wanted, into)


def threads():
    return [t for t in threading.enumerate() if t.name == "dcdc-read-ahead"]


@pytest.mark.parametrize("n_taken", [0, 1, 29, 30])
@pytest.mark.parametrize("way", ["close", "del", "cycle"])
def test_the_thread_ends_when_nobody_wants_more(n_taken, way):
    ahead = ReadAhead(copy_indices, BATCHES, [TurnSlot(), TurnSlot()])
    for _ in range(n_taken):
        ahead.take()
    if way == "close":
        ahead.close()
        ahead.close()
    elif way == "cycle":
        ahead.itself = ahead
    if way != "close":
        del ahead
        gc.collect()
    assert not threads()


def test_closing_waits_for_the_batch_being_read():
    """What it is read into may be let go of afterwards."""
    gate = Gate()
    ahead = ReadAhead(gate.read, BATCHES, [TurnSlot(), TurnSlot()])
    assert gate.is_reading.wait(PATIENCE)
    threading.Timer(0.05, gate.may_go_on.set).start()
    ahead.close()
    assert gate.may_go_on.is_set()
    assert not threads()
    assert gate.n_reads == 1  # though there was room for another


def test_a_read_that_hangs_does_not_hang_those_who_close(monkeypatch):
    monkeypatch.setattr(streaming, "_LAST_WAIT_SECONDS", 0.05)
    gate = Gate()
    ahead = ReadAhead(gate.read, BATCHES, [TurnSlot()])
    assert gate.is_reading.wait(PATIENCE)
    ahead.close()
    assert threads()
    gate.may_go_on.set()
    wait_until(lambda: not threads())


def test_it_may_be_collected_in_its_own_thread(monkeypatch):
    complaints, kept = [], []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    gate = Gate()

    def forget(wanted, into):
        gate.read(wanted, into)
        kept.clear()

    kept.append(ReadAhead(forget, BATCHES, [TurnSlot()]))
    gate.may_go_on.set()
    wait_until(lambda: not kept and not threads())
    assert not complaints


SCRIPT = """
import sys, time
import numpy as np, torch
from dcdc.data import store, streaming

streaming._LAST_WAIT_SECONDS = 1.0
kept = store.StreamedStore(np.load(sys.argv[1], mmap_mode="r"), "cpu")
kept._rows.read = lambda wanted, into: time.sleep(float(sys.argv[2]))
kept.expect(torch.zeros((50, 3), dtype=torch.int64))
print("ready", flush=True)
kept.batch(torch.zeros(3, dtype=torch.int64))
"""


@pytest.mark.parametrize("ending", ["at its end", "interrupted while a read hangs"])
def test_a_process_ends_while_it_reads_ahead(file, ending):
    hangs = ending != "at its end"
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(file), "600" if hangs else "0.1"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        if hangs:
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == (-signal.SIGINT if hangs else 0), errors
    assert errors.endswith("KeyboardInterrupt\n") if hangs else not errors


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("user", ["default stream", "own stream"])
def test_rows_arrive_unharmed_while_the_gpu_lags_far_behind(user):
    """It sleeps around every use: slots are wanted again before it has read them."""
    pixels = torch.randint(0, 256, (400, 96, 96, 3), dtype=torch.uint8)
    rows = JoinedRows([pixels.numpy()])
    batches = [np.random.default_rng(k).integers(0, 400, 100 - k % 3) for k in range(60)]
    right = [pixels[batch].cuda() for batch in batches]
    lane = CudaLane(torch.device("cuda"))
    stream = torch.cuda.current_stream() if user == "default stream" else torch.cuda.Stream()
    n_wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(3):
            ahead = ReadAhead(rows.read, batches, lane.slots(3, (100, 96, 96, 3)))
            kept = []
            for wanted in right:
                torch.cuda._sleep(5_000_000)
                kept.append(ahead.take())
                torch.cuda._sleep(5_000_000)
                n_wrong += (kept[-1] != wanted).sum()
            for found, wanted in zip(kept, right, strict=True):
                n_wrong += (found != wanted).sum()
    assert n_wrong.item() == 0


@pytest.mark.gpu
@needs_gpu
def test_a_graph_is_captured_while_rows_are_read():
    rows = JoinedRows([PIXELS])
    slots = CudaLane(torch.device("cuda")).slots(2, (8, *PIXELS.shape[1:]))
    ahead = ReadAhead(rows.read, [WANTED] * 200, slots)
    buffer = ahead.take()
    for _ in range(20):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            doubled = buffer.int() * 2
            time.sleep(0.01)
        buffer.copy_(ahead.take())
        graph.replay()
        assert np.array_equal(doubled.cpu().numpy(), PIXELS[WANTED].astype(int) * 2)
    ahead.close()


@pytest.mark.gpu
@needs_gpu
def test_rows_are_read_ahead_for_who_asks_in_inference_mode():
    """As evaluation does: the thread that fills the slots is in no such mode."""
    rows = JoinedRows([PIXELS])
    with torch.inference_mode():
        slots = CudaLane(torch.device("cuda")).slots(2, (8, *PIXELS.shape[1:]))
        ahead = ReadAhead(rows.read, [WANTED] * 5, slots)
        for _ in range(5):
            assert np.array_equal(ahead.take().cpu().numpy(), PIXELS[WANTED])
