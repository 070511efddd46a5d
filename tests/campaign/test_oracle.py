"""The campaign sees what it is there for: each kind of unclean answer, and each file operation."""

import os
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from campaign.case import Case, fault_of, fresh_folder
from campaign.file_operations import Disturbance, die, watch
from campaign.process import call, warm

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="processes are watched by what Linux tells of them"
)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Before the first fork, not after each."""
    warm()


def refuse(line: str = "dcdc: setting x is wrong\n", code: int = 2) -> None:
    sys.stderr.write(line)
    sys.exit(code)


def raise_an_error() -> None:
    raise ValueError("nobody caught it")


def refuse_and_leave() -> None:
    Path("left.partial").touch()
    refuse()


def refuse_and_remove() -> None:
    Path("mine").unlink()
    refuse()


def refuse_and_change() -> None:
    Path("mine").write_text("theirs")
    refuse()


def answer(text: str) -> None:
    Path("out").touch()
    print(text)


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        (refuse, ""),
        (partial(answer, "right"), ""),
        (raise_an_error, "traceback"),
        (partial(answer, "wrong"), "changed answer"),
        (partial(refuse, "dcdc: something is wrong\n"), "names none of"),
        (partial(refuse, "a note about x\ndcdc: x is wrong\n"), "not one line"),
        (partial(refuse, "x is wrong\n"), "not one line"),
        (partial(refuse, ""), "not one line"),
        (partial(refuse, "dcdc: x is \x1b[31mwrong\n"), "raw control characters"),
        (partial(refuse, code=1), "exit code 1"),
        (die, "exit code -9"),
        (refuse_and_leave, "leftover: left.partial"),
        (refuse_and_remove, "changed or gone: mine"),
        (refuse_and_change, "changed or gone: mine"),
    ],
)
def test_an_unclean_answer_is_told(work, fault):
    def prepare(folder: Path):
        (folder / "mine").write_text("mine")
        return work

    found = fault_of(
        Case(
            name="an input",
            prepare=prepare,
            names=("setting x", "x is"),
            answer=lambda folder, ended: ended.out.strip(),  # noqa: ARG005
            wanted="right",
            makes=("out",),
        )
    )
    assert found.startswith(fault) if fault else found == ""


def test_a_hang_ends(tmp_path):
    (tmp_path / "here").mkdir()
    ended = call(partial(time.sleep, 60), tmp_path / "here", seconds=0.2)
    assert ended.hung


def write_twice() -> None:
    with Path("a").open("wb", 0) as file:
        file.write(b"12345678")
        os.fsync(file.fileno())
    Path("a").rename("b")
    Path("b").write_text("text")


OPERATIONS = ["open a", "write a", "fsync a", "os.rename b", "open b", "write b"]


def test_every_operation_is_seen():
    with fresh_folder() as folder:

        def work() -> None:
            def tell(kind: str, path: str) -> bool:
                print(kind, path, file=sys.stderr)
                return False

            watch(folder, tell)
            write_twice()

        assert call(work, folder).err.splitlines() == OPERATIONS


@pytest.mark.parametrize(
    ("number", "left"),
    [
        (0, {}),
        (1, {"a": "1234"}),
        (2, {"a": "12345678"}),
        (3, {"a": "12345678"}),
        (4, {"b": "12345678"}),
        (5, {"b": "te"}),
    ],
)
def test_a_kill_comes_before_an_operation_and_in_the_middle_of_a_write(number, left):
    with fresh_folder() as folder:

        def work() -> None:
            watch(folder, Disturbance("kill", number))
            write_twice()

        assert call(work, folder).code == -9
        assert {path.name: path.read_text() for path in folder.iterdir()} == left


@pytest.mark.parametrize("how", ["ENOSPC", "EIO"])
def test_a_fault_is_raised_where_it_is_asked_for(how):
    with fresh_folder() as folder:

        def work() -> None:
            watch(folder, Disturbance(how, 1))
            write_twice()

        ended = call(work, folder)
        assert ended.code == 1
        reason = "No space left on device" if how == "ENOSPC" else "Input/output error"
        assert f"{reason}: 'a'" in ended.err
