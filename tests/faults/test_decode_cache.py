"""The command line killed while it decodes, and two of it at once, over one real folder."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dcdc.data import load_images

N_IMAGES = 2_000


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number in range(N_IMAGES):
        colour = (number % 251, number // 251, 7)
        Image.new("RGB", (40, 40), colour).save(folder / f"{number:04d}.png")
    return folder


def fit(photos: Path, cache: Path, run: Path) -> subprocess.Popen:
    flags = ["--clusters", "3", "--epochs", "1", "--size", "16", "--batch-size", "500"]
    quick = ["--set", "heads.n_repeats=1", "--set", "heads.over_clustering_first=0", "--quiet"]
    quick.append("--no-report")
    return subprocess.Popen(
        [sys.executable, "-m", "dcdc", "fit", str(photos), "--run", str(run), *flags, *quick],
        env=os.environ | {"DCDC_DATA": str(cache), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def n_blocks(cache: Path) -> int:
    journals = list(cache.glob("decoded/*/journal"))
    return len(journals[0].read_text().splitlines()) - 1 if journals else 0


def wait_for_blocks(cache: Path, wanted: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while n_blocks(cache) < wanted:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def assert_right(photos: Path) -> None:
    images = load_images(photos, size=16).images
    numbers = images[:, 8, 8, :2].astype(int) @ (1, 251)
    assert np.array_equal(numbers, np.arange(N_IMAGES))


def test_a_build_killed_in_the_middle_is_gone_on_with(photos, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("DCDC_DATA", str(cache))
    first = fit(photos, cache, tmp_path / "first")
    wait_for_blocks(cache, 2, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not list(cache.glob("decoded/*/done"))
    # What a run writes comes after the images; the lock of a dead process is taken over.
    assert {file.name for file in (tmp_path / "first").iterdir()} <= {".dcdc-lock"}
    assert n_blocks(cache) >= 2
    assert_right(photos)
    assert list(cache.glob("decoded/*/done"))


@pytest.mark.slow
def test_two_runs_at_once_share_one_build(photos, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("DCDC_DATA", str(cache))
    both = [fit(photos, cache, tmp_path / name) for name in ("a", "b")]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert len(list(cache.glob("decoded/*/rows"))) == 1
    assert_right(photos)
