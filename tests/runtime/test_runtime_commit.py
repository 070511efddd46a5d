import subprocess
from pathlib import Path

from dcdc.runtime import commit


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clone_names_its_commit_and_changes_beside_it(tmp_path, monkeypatch):
    source = tmp_path / "commit.py"
    source.write_text("one")
    monkeypatch.setattr(commit, "__file__", str(source))
    monkeypatch.delenv(commit.VARIABLE, raising=False)
    assert commit.own_commit() is None  # no repository at all
    git(tmp_path, "init", "-q")
    assert commit.own_commit() is None  # somebody else's, which does not track us
    git(tmp_path, "add", "commit.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "-a", "v1", "-m", "a tag is not a commit's name")
    found = commit.own_commit()
    assert found
    assert git(tmp_path, "rev-parse", "HEAD").startswith(found)
    monkeypatch.setenv(commit.VARIABLE, "of-an-image")
    assert commit.own_commit() == found  # a clone knows better
    source.write_text("two")
    assert commit.own_commit() == f"{found}-dirty"


def test_without_git_the_environment_tells_the_commit_or_nobody(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(commit.VARIABLE, "1a2b3c4")
    assert commit.own_commit() == "1a2b3c4"
    monkeypatch.setenv(commit.VARIABLE, "")
    assert commit.own_commit() is None
    monkeypatch.delenv(commit.VARIABLE)
    assert commit.own_commit() is None
