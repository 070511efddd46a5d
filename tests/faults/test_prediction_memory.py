"""A prediction's memory does not grow with the number of images.

Resident memory is read from the kernel, in a process of its own, for two folders of which one has
five times as many images.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

FEW, MANY, KILLED_AT = 20_000, 100_000, 50_000
SIDE = 32
PIXELS = (MANY - FEW) * SIDE * SIDE  # 82 MB, had all been kept; their features take 82 MB more

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(),
        reason="resident memory is read from /proc, which this system lacks",
    ),
]

SCRIPT = """
import atexit, os, re, sys

die_at = int(sys.argv.pop())
from dcdc.runtime.journal import Appender
append = Appender.append
def dying(self, *arguments, **options):
    append(self, *arguments, **options)
    if self._folder.n_read >= die_at:
        os.kill(os.getpid(), 9)
if die_at:
    Appender.append = dying

def tell():
    status = open("/proc/self/status").read()
    print("peak", re.search(r"VmHWM:\\s*(\\d+) kB", status)[1], flush=True)

atexit.register(tell)
from dcdc.cli import main
main()
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Equal images under many names, by hard links: a hundred thousand are made in seconds."""
    root = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    for number in range(50):
        pixels = random.integers(0, 256, (SIDE, SIDE), np.uint8)
        Image.fromarray(pixels).save(root / f"{number}.png")
    for n_images in (FEW, MANY):
        for number in range(n_images):
            folder = root / str(n_images) / f"{number // 1000:03}"
            if number % 1000 == 0:
                folder.mkdir(parents=True)
            os.link(root / f"{number % 50}.png", folder / f"{number:06}.png")
    return root


@pytest.fixture(scope="module")
def run(tiny_file, tiny_flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    command = [sys.executable, "-m", "dcdc", "fit", tiny_file, "--run", folder, "--no-report"]
    subprocess.run([*command, *tiny_flags], check=True, capture_output=True)
    return folder


def predict(run, source, out, die_at=0) -> subprocess.CompletedProcess:
    flags = ["--out", out, "--features", out.with_suffix(".npy"), "--device", "cpu"]
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, "predict", run, source, *flags, str(die_at)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_hundred_thousand_images_take_the_memory_of_a_few_and_survive_a_kill(
    run, folders, tmp_path
):
    peaks = {}
    for n_images in (FEW, MANY):
        done = predict(run, folders / str(n_images), tmp_path / f"{n_images}.parquet")
        assert done.returncode == 0, done.stderr
        peaks[n_images] = int(done.stdout.split("peak")[1]) * 1024
    print(f"peak resident memory: {peaks}")
    # Names and fingerprints of 80,000 files more are all that may come on top.
    assert peaks[MANY] - peaks[FEW] < 40e6

    killed = predict(run, folders / str(MANY), tmp_path / "killed.parquet", KILLED_AT)
    assert killed.returncode == -9
    again = predict(run, folders / str(MANY), tmp_path / "killed.parquet")
    assert again.returncode == 0, again.stderr
    assert "50,176 of 100,000 images were done before" in again.stderr
    whole = tmp_path / f"{MANY}.parquet"
    assert (tmp_path / "killed.parquet").read_bytes() == whole.read_bytes()
    assert (tmp_path / "killed.npy").read_bytes() == whole.with_suffix(".npy").read_bytes()
    names = pq.read_table(whole, columns=["name"])["name"].to_pylist()
    assert names == [f"{number // 1000:03}/{number:06}.png" for number in range(MANY)]
