"""Runs of methods on a tiny file, and folders as such runs leave them."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dcdc.config import DataConfig
from dcdc.engine.observer import SilentObserver
from dcdc.experiments.method_process import Children
from dcdc.experiments.method_runs import MethodRun, Task, plan, read_settings
from dcdc.metrics import partition_health
from dcdc.run_folder import RunFolder


@pytest.fixture
def make_run(tiny_file, tmp_path) -> Callable[..., MethodRun]:
    def make(method: str, *settings: str, seed: int = 0, **task) -> MethodRun:
        whole = {"data": DataConfig(source=str(tiny_file), size=8), "n_clusters": 3, **task}
        asked = read_settings(settings, [method])
        (run,) = plan([method], asked, [seed], Task(**whole, device="cpu"), tmp_path / "out")
        return run

    return make


@pytest.fixture
def leave_run() -> Callable[..., Path]:
    """A folder as a finished run leaves it, or as a stopped one does."""

    def leave(run: MethodRun, acc: float = 0.5, *, done: bool = True, **metrics) -> Path:
        run.folder.mkdir(parents=True)
        RunFolder(run.folder).write_config(run.described())
        known = {
            "scores": {"nmi": acc / 2, "acc": acc, "ari": acc / 4},
            "health": partition_health(np.eye(3)).to_dict(),
            **{"n_images": 3, "n_clusters": 3, "epochs": None, "seed": run.seed},
            "training_seconds": 12.5,
            "peak_memory_mb": 300,
            "peak_gpu_memory_mb": None,
            "device": "a device",
            "dcdc": "1",
            "torch": "2",
            "scikit-learn": "3",
            "commit": None,
        }
        if done:
            (run.folder / "metrics.json").write_text(json.dumps(known | metrics))
        return run.folder

    return leave


class Seen(SilentObserver):
    def __init__(self):
        self.epochs, self.steps, self.notes = [], 0, []
        self.after_epoch = lambda: None

    def on_step(self, terms, n_images):  # noqa: ARG002 - the signature of an observer
        self.steps += 1

    def on_epoch(self, record):
        self.epochs.append(record["epoch"])
        self.after_epoch()

    def note(self, message):
        self.notes.append(message)


@pytest.fixture
def parent():
    """What starts children, what was seen of them, and the clock's word."""
    found = SimpleNamespace(seen=Seen(), over=False)

    @contextmanager
    def watch(_):
        yield found.seen

    found.children = Children(watch=watch, is_over=lambda: found.over)
    return found
