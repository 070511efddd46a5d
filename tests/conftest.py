"""Small images that any method can tell apart, and a run short enough for every test."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
import torch

from corrected_runs import (  # noqa: F401 - fixtures for every test
    mixed_file,
    mixed_image_run,
    mixed_image_run_once,
    mixed_run,
    mixed_run_once,
)
from dcdc.config import (
    AugmentConfig,
    DataConfig,
    NetworkConfig,
    RunConfig,
    TrainConfig,
)
from dcdc.data import ImageSet, from_arrays
from dcdc.phases.heads import Heads
from devtools import browser  # noqa: F401 - a fixture for every test
from feature_runs import (  # noqa: F401 - fixtures for every test
    frozen_run,
    frozen_run_once,
    photo_folder,
    vector_run,
    vector_run_once,
    vectors_file,
)
from own_signals import own_signals  # noqa: F401 - a fixture for every test

# They need forks, pseudo-terminals, pipes with names or limits of memory.
_NOT_ON_WINDOWS = (
    *("campaign", "cli", "distributed", "faults", "journey"),
    *("data/test_data_row_cache.py", "data/benchmarks/test_benchmarks_download.py"),
    "runtime/test_runtime_tensor_files.py",
)
collect_ignore = [*_NOT_ON_WINDOWS] if sys.platform == "win32" else []

# Two threads on a busy machine wait for each other far longer than they compute.
torch.set_num_threads(1)


LONG = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").splitlines())
"""Tests that are slow, beside those that say so themselves: one case of several, say."""


@pytest.hookimpl(tryfirst=True)  # before those of another marker are left out
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid in LONG:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Tests, and the processes they start, never touch the user's cache, and train on their own
    images whatever pretrained backbone is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DCDC_BACKBONE", "scratch")
        patch.setenv("DCDC_DATA", str(tmp_path_factory.mktemp("cache")))
        yield


def striped_images(n_images: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """8x8 grey images of three kinds: stripes across, stripes down, a bright middle."""
    random = np.random.default_rng(seed)
    kinds = np.zeros((3, 8, 8))
    kinds[0, ::2], kinds[1, :, ::2], kinds[2, 2:6, 2:6] = 1, 1, 1
    targets = np.arange(n_images) % 3
    noisy = 200 * kinds[targets] + random.uniform(0, 50, (n_images, 8, 8))
    return noisy.astype(np.uint8), targets


@pytest.fixture(scope="session")
def tiny_set() -> ImageSet:
    """One for all tests, so nobody may write to it."""
    images, targets = striped_images(48)
    for array in (images, targets):
        array.setflags(write=False)
    return from_arrays(images, targets)


@pytest.fixture(scope="session")
def tiny_config() -> RunConfig:
    return RunConfig(
        n_clusters=3,
        data=DataConfig(source="tiny.npz"),
        network=NetworkConfig(backbone="small", over_clusters=6),
        augment=AugmentConfig(shift=0.1, noise=0.05),
        phases=(Heads(epochs=4, batch_size=16, n_repeats=2),),
        train=TrainConfig(threads=1, device="cpu", checkpoint_every=1),
    )


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory):
    """The same images as a file, for the command line."""
    images, targets = striped_images(48)
    path = tmp_path_factory.mktemp("images") / "tiny.npz"
    np.savez(path, images=images, targets=targets)
    return path


TINY_FLAGS = [
    *("--epochs", "4", "--batch-size", "16", "--device", "cpu", "--clusters", "3"),
    *("--set", "network.over_clusters=6", "--set", "heads.n_repeats=2"),
    *("--set", "heads.over_clustering_first=0", "--set", "train.checkpoint_every=1"),
]


@pytest.fixture(scope="session")
def tiny_flags() -> list[str]:
    return list(TINY_FLAGS)


@pytest.fixture(scope="session")
def forked():
    """Starts a real process, to be killed, that need not wait for torch to be imported."""
    started = []

    def start(call: Callable[[], object]) -> BaseProcess:
        process = multiprocessing.get_context("fork").Process(target=call)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def interpreted():
    """Runs a script in a process whose Triton kernels are interpreted on the CPU; what it says."""
    if find_spec("triton") is None:
        pytest.skip("triton is not installed")

    def run(script: str) -> str:
        finished = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"TRITON_INTERPRET": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return finished.stdout + finished.stderr

    return run


@pytest.fixture
def compiled(tmp_path):
    """What a script prints that compiles Triton kernels, for which there need be no device.

    The interpreter, by which kernels are tested elsewhere, takes what the compiler refuses.
    """

    def lines_of(script: str) -> list[str]:
        environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
        environment.pop("TRITON_INTERPRET", None)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return lines_of
