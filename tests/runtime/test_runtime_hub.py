"""The hub's client is played by a stand-in: no test reaches the net."""

import sys
from types import SimpleNamespace

import pytest

from dcdc.errors import InputError
from dcdc.runtime.hub import fetch_folder, push_folder


@pytest.fixture
def client(monkeypatch):
    """A client whose every call is a fault."""

    def fault(*_, **__):
        raise RuntimeError("\n\n404: no such repository\nRequest ID: 1234\n")

    api = SimpleNamespace(create_repo=fault, upload_folder=fault)
    monkeypatch.setitem(
        sys.modules,
        "huggingface_hub",
        SimpleNamespace(HfApi=lambda: api, snapshot_download=fault),
    )


@pytest.mark.usefixtures("client")
def test_faults_of_the_hub_are_one_line(tmp_path):
    with pytest.raises(InputError, match=r"^a/b is no folder here and .*: 404[^\n]*$"):
        fetch_folder("a/b", ["config.json"])
    with pytest.raises(InputError, match=r"^cannot push to a/b: 404[^\n]*$"):
        push_folder(tmp_path, "a/b")


@pytest.mark.parametrize("repo", ["runs/photos/", "photos", "a/b/c", "../photos", "a b/c"])
def test_what_is_no_repository_is_refused_before_any_call(repo, tmp_path):
    with pytest.raises(InputError, match="OWNER/NAME"):
        fetch_folder(repo, ["config.json"])
    with pytest.raises(InputError, match="OWNER/NAME"):
        push_folder(tmp_path, repo)


def test_without_the_client_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'dcdc\[hub\]'"):
        fetch_folder("a/b", ["config.json"])
    with pytest.raises(InputError, match=r"pip install 'dcdc\[hub\]'"):
        push_folder(tmp_path, "a/b")
