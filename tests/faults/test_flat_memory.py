"""A million images are built into the cache, measured, ordered and gathered in little memory.

Resident memory is read from the kernel, in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

N_IMAGES, SIDE = 1_000_000, 16
ALL_PIXELS = N_IMAGES * SIDE * SIDE * 3  # 768 MB

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="resident memory is read from /proc, which this system lacks",
)

SCRIPT = """
import json, re, sys

import numpy as np
import torch

from dcdc.data import channel_statistics
from dcdc.data.store import epoch_batches
from dcdc.data.row_cache import Block, RowSource, cached_rows
from dcdc.data.store import open_store

n_images, side = map(int, sys.argv[1:])


def blocks(start):
    for first in range(start, n_images, 10_000):
        numbers = np.arange(first, first + 10_000, dtype=np.uint32)
        pixels = np.zeros((10_000, side, side, 3), np.uint8)
        pixels[:, 0, 0, 0], pixels[:, 0, 1, 0] = numbers % 251, numbers % 241
        yield Block(pixels, n_read=10_000)


def resident(key):
    return int(re.search(key + r":\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024


torch.set_num_threads(1)
before = resident("VmRSS")
rows = cached_rows(RowSource("million", n_images, (side, side, 3), blocks)).images
channel_statistics(rows)
store = open_store(rows, "cpu")
seen = 0
for indices in epoch_batches(n_images, 500, torch.Generator().manual_seed(0)):
    batch = store.batch(indices)
    assert batch[:, 0, 0, 0].equal((indices % 251).byte())
    assert batch[:, 0, 0, 1].equal((indices % 241).byte())
    seen += len(batch)
for chunk in store.in_chunks(5_000):
    seen += len(chunk)
print(json.dumps({"resident": store.is_resident, "seen": seen, "peak": resident("VmHWM") - before}))
"""


def measured(tmp_path) -> dict:
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(N_IMAGES), str(SIDE)],
        env=os.environ | {"DCDC_DATA": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.slow
def test_a_million_images_go_by_in_little_memory(tmp_path):
    found = measured(tmp_path)
    assert not found["resident"]
    assert found["seen"] == 2 * N_IMAGES
    assert found["peak"] < ALL_PIXELS / 4
