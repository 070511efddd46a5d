import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dcdc.runtime import environment
from dcdc.runtime.environment import own_version, version_of


def test_an_installed_package_has_a_version():
    built, _, _ = torch.__version__.partition("+")  # the rest is not in every package's metadata
    assert version_of("torch").partition("+")[0] == built
    assert own_version() == version_of("dcdc") != "unknown"


def test_what_was_never_installed_has_none():
    assert version_of("dcdc-that-nobody-installed") == "unknown"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clone_names_its_commit_and_changes_beside_it(tmp_path, monkeypatch):
    source = tmp_path / "commit.py"
    source.write_text("one")
    monkeypatch.setattr(environment, "__file__", str(source))
    monkeypatch.delenv(environment.COMMIT_VARIABLE, raising=False)
    assert environment.own_commit() is None  # no repository at all
    git(tmp_path, "init", "-q")
    assert environment.own_commit() is None  # somebody else's, which does not track us
    git(tmp_path, "add", "commit.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "-a", "v1", "-m", "a tag is not a commit's name")
    found = environment.own_commit()
    assert found
    assert git(tmp_path, "rev-parse", "HEAD").startswith(found)
    monkeypatch.setenv(environment.COMMIT_VARIABLE, "of-an-image")
    assert environment.own_commit() == found  # a clone knows better
    source.write_text("two")
    assert environment.own_commit() == f"{found}-dirty"


def test_without_git_the_environment_tells_the_commit_or_nobody(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(environment.COMMIT_VARIABLE, "1a2b3c4")
    assert environment.own_commit() == "1a2b3c4"
    monkeypatch.setenv(environment.COMMIT_VARIABLE, "")
    assert environment.own_commit() is None
    monkeypatch.delenv(environment.COMMIT_VARIABLE)
    assert environment.own_commit() is None


PROGRAM = (
    "from pathlib import Path; import dcdc.runtime.environment as here; "
    "here._STATUS = Path({status!r}); held = bytearray(b'x') * {held}; del held; "
    "print(here.peak_memory_mb())"
)


def peak(held: int, status: str) -> float:
    program = PROGRAM.format(status=status, held=held)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return float(done.stdout)


@pytest.mark.parametrize("status", ["/proc/self/status", "/nowhere"], ids=["proc", "getrusage"])
def test_the_peak_is_what_was_held_at_most_though_it_was_given_back(status):
    held = 1_500_000_000  # above what this process holds, which getrusage may count
    assert peak(held, status) > held / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="getrusage alone, elsewhere")
def test_what_the_parent_holds_does_not_count():
    ballast = bytearray(b"x") * 300_000_000
    assert peak(1, "/proc/self/status") < len(ballast) / 2**20


def test_spinning_is_bounded_unless_a_person_chose(monkeypatch):
    for chosen in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(chosen, raising=False)
    for chosen in ({}, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}):
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", dict(chosen))
            environment.bound_spinning()
            assert os.environ == (chosen or {"GOMP_SPINCOUNT": "10000"})
