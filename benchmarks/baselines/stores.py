"""Batches alone: from the set on the device, and streamed from a mapped file."""

import tempfile
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.bench.timing import Measured, Trial, time_calls
from dcdc.data.store import DeviceStore, Store, StreamedStore

RESIDENT, STREAMED = "resident batch", "streamed batch"
_SIDE = 96
_N_IMAGES = 2_000
_BATCH_SIZE = 100
_ANNOUNCED = 1_000


def store_trials(device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    with tempfile.TemporaryDirectory(prefix="dcdc-bench-") as folder:
        images = _mapped_images(Path(folder) / "images.npy")
        for name, kind in ((RESIDENT, DeviceStore), (STREAMED, StreamedStore)):
            yield Trial(name, partial(_measure, kind, images, device, seconds))


def _mapped_images(path: Path) -> NDArray[np.uint8]:
    random = np.random.default_rng(0)
    np.save(path, random.integers(0, 256, (_N_IMAGES, _SIDE, _SIDE, 3), np.uint8))
    mapped: NDArray[np.uint8] = np.load(path, mmap_mode="r")
    return mapped


def _measure(
    kind: type[DeviceStore] | type[StreamedStore],
    images: NDArray[np.uint8],
    device: torch.device,
    seconds: float,
) -> Measured:
    batches = _batches(kind(images, device), device)
    timing = time_calls(lambda: next(batches), device, seconds)
    return Measured(timing, images=_BATCH_SIZE, details={"side": _SIDE, "n_images": _N_IMAGES})


def _batches(store: Store, device: torch.device) -> Iterator[Tensor]:
    """Without end, announced as a training announces them."""
    random = torch.Generator().manual_seed(0)
    while True:
        announced = torch.randint(0, len(store), (_ANNOUNCED, _BATCH_SIZE), generator=random)
        store.expect(announced)
        for indices in announced.to(device):
            yield store.batch(indices)
