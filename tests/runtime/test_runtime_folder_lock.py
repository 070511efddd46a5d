import json
import os
import re
import signal
import socket
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from dcdc.errors import InputError
from dcdc.runtime import folder_lock
from dcdc.runtime.folder_lock import LOCK, locked_folder, refuse_if_locked


@pytest.fixture
def owner(forked, tmp_path):
    """Another process that holds the lock of `tmp_path / "run"`."""

    def hold() -> None:
        with locked_folder(tmp_path / "run"):
            time.sleep(600)

    process = forked(hold)
    note = tmp_path / "run" / LOCK
    while not (note.exists() and note.read_text().endswith("\n")):
        assert process.is_alive()
        time.sleep(0.002)
    return process


def test_the_second_is_told_who_the_first_is(owner, tmp_path):
    run, host = tmp_path / "run", re.escape(socket.gethostname())
    who = rf"process {owner.pid} on {host}, since 20\d\d-\d\d-\d\d \d\d:"
    for refused in (locked_folder(run).__enter__, partial(refuse_if_locked, run)):
        with pytest.raises(InputError, match=rf"is working in .*run \({who}") as told:
            refused()
        assert str(told.value).endswith(": wait for it")
    assert json.loads((tmp_path / "run" / LOCK).read_text())["process"] == owner.pid


def test_a_killed_owner_holds_nothing(owner, tmp_path):
    os.kill(owner.pid, signal.SIGKILL)
    owner.join()
    assert (tmp_path / "run" / LOCK).exists()
    refuse_if_locked(tmp_path / "run")
    with locked_folder(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / LOCK).read_text())["process"] == os.getpid()
    assert list((tmp_path / "run").iterdir()) == []


def test_it_nests_in_its_thread_alone(tmp_path):
    told: list[str] = []

    def try_it() -> None:
        try:
            with locked_folder(tmp_path):
                told.append("two at once")
        except InputError as error:
            told.append(str(error))

    with locked_folder(tmp_path) as outermost:
        with locked_folder(tmp_path / ".") as inner:
            assert (outermost, inner) == (True, False)
        other = threading.Thread(target=try_it)
        other.start()
        other.join()
        with pytest.raises(InputError), locked_folder(tmp_path, may_nest=False):
            pass
        assert (tmp_path / LOCK).exists()
    assert len(told) == 1
    assert f"process {os.getpid()} on" in told[0]
    assert list(tmp_path.iterdir()) == []


def test_folders_that_were_made_and_stayed_empty_go_again(tmp_path):
    (tmp_path / "runs").mkdir()
    with locked_folder(tmp_path / "runs" / "deep" / "run"):
        pass
    assert list((tmp_path / "runs").iterdir()) == []
    with locked_folder(tmp_path / "runs" / "deep" / "run"):
        (tmp_path / "runs" / "deep" / "run" / "config.json").write_text("{}")
    assert (tmp_path / "runs" / "deep" / "run" / "config.json").exists()
    with pytest.raises(RuntimeError), locked_folder(tmp_path / "other"):
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.fixture
def of_another_machine(tmp_path, monkeypatch):
    """The note of an owner whose lock the system here knows nothing of."""
    monkeypatch.setattr(folder_lock, "_SECONDS_WITHOUT_A_SIGN", 0.5)
    monkeypatch.setattr(folder_lock, "_SECONDS_OF_A_LOOK", 0.05)
    note = {"host": "gpu-7", "process": 41, "since": "2026-01-02 03:04:05+00:00", "kernel": "other"}
    (tmp_path / LOCK).write_text(json.dumps(note) + "\n")
    return tmp_path


def test_an_owner_on_another_machine_that_gives_signs_is_believed(of_another_machine):
    done = threading.Event()

    def live() -> None:
        while not done.wait(0.1):
            os.utime(of_another_machine / LOCK)

    signs = threading.Thread(target=live)
    signs.start()
    try:
        told = r"process 41 on gpu-7, since 2026-01-02 03:04:05\+00:00"
        with pytest.raises(InputError, match=told), locked_folder(of_another_machine):
            pass
        assert "gpu-7" in (of_another_machine / LOCK).read_text()
    finally:
        done.set()
        signs.join()


def test_one_that_gives_none_is_dead(of_another_machine):
    with locked_folder(of_another_machine):
        assert "gpu-7" not in (of_another_machine / LOCK).read_text()


def test_an_owner_gives_signs(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_lock, "_SECONDS_BETWEEN_SIGNS", 0.01)
    with locked_folder(tmp_path):
        before = (tmp_path / LOCK).stat().st_mtime_ns
        deadline = time.monotonic() + 10
        while (tmp_path / LOCK).stat().st_mtime_ns == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("note", ["", "{", "[]", "[" * 4000, '{"kernel": 3, "host": []}', "\x00"])
def test_a_damaged_note_is_nobody(tmp_path, monkeypatch, note):
    monkeypatch.setattr(folder_lock, "_SECONDS_WITHOUT_A_SIGN", 0.0)
    (tmp_path / LOCK).write_text(note)
    with locked_folder(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()


def test_among_many_there_is_one_at_a_time(forked, tmp_path):
    """Folder and lock come and go with each of them."""
    run, inside = tmp_path / "runs" / "run", tmp_path / "inside"

    def work() -> None:
        done = 0
        deadline = time.monotonic() + 60
        while done < 25:
            assert time.monotonic() < deadline
            try:
                with locked_folder(run):
                    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
                    time.sleep(0.001)
                    inside.unlink()
                    done += 1
            except InputError:
                time.sleep(0.001)

    processes = [forked(work) for _ in range(4)]
    for process in processes:
        process.join(90)
    assert [process.exitcode for process in processes] == [0] * 4
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []


@pytest.mark.parametrize("seen", [FileExistsError, FileNotFoundError])
@pytest.mark.parametrize("name", ["runs", "run"])
def test_a_folder_that_others_remove_while_it_is_made_is_made_again(
    tmp_path, monkeypatch, name, seen
):
    """There at the first look, gone at the second; or the folder above gone before its own."""
    make, failed = os.mkdir, []

    def mkdir(path, *args, **kwargs):
        if Path(path).name == name and len(failed) < 4:
            failed.append(path)
            raise seen(path)
        make(path, *args, **kwargs)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with locked_folder(tmp_path / "runs" / "run"):
        assert (tmp_path / "runs" / "run" / LOCK).exists()
    assert len(failed) == 4
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_folders_place_stays_a_fault(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(FileExistsError), locked_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_regular_file_in_the_locks_place_is_refused_at_once(tmp_path, kind):
    place, elsewhere = tmp_path / LOCK, tmp_path / "thesis.txt"
    elsewhere.write_text("mine")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(elsewhere)
    else:
        place.mkdir()
    with pytest.raises(InputError, match="is no regular file: remove it"):
        locked_folder(tmp_path).__enter__()
    assert elsewhere.read_text() == "mine"
