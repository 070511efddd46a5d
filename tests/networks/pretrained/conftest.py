"""A hub's cache of our own, no network, and timm where torchvision is not installed."""

import hashlib
import os
import socket
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from unittest.mock import MagicMock

import pytest
from torch import nn

STANDS_IN = ("", ".ops", ".ops.misc", ".transforms", ".transforms.functional", ".datasets")


class StandIn(ModuleType):
    """Has whatever is imported from it; timm's models use one class of it."""

    __path__: tuple[str, ...] = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


@pytest.fixture(scope="module")
def timm():
    """Its models need of torchvision one class and names to import."""
    if find_spec("timm") is None:
        pytest.skip("timm is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if find_spec("torchvision") is None:
            for end in STANDS_IN:
                name = f"torchvision{end}"
                module = StandIn(name)
                module.__spec__ = ModuleSpec(name, None)
                patch.setitem(sys.modules, name, module)
            misc = sys.modules["torchvision.ops.misc"]
            misc.FrozenBatchNorm2d = type("FrozenBatchNorm2d", (nn.Module,), {})
        import timm

        yield timm


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty cache; `add(repo, name, data)` puts a file in as the hub's client would."""
    hub = pytest.importorskip("huggingface_hub")
    cache = tmp_path / "hub"
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(cache))

    def add(repo: str, name: str, data: bytes, blob: str | None = None):
        folder = cache / f"models--{repo.replace('/', '--')}"
        stored = folder / "blobs" / (blob or hashlib.sha256(data).hexdigest())
        placed = folder / "snapshots" / "c0ffee" / name
        for path in (stored, placed, folder / "refs" / "main"):
            path.parent.mkdir(parents=True, exist_ok=True)
        (folder / "refs" / "main").write_text("c0ffee")
        stored.write_bytes(data)
        placed.symlink_to(os.path.relpath(stored, placed.parent))
        return placed

    return add


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise OSError("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
