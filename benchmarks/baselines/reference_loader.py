"""The reference's batches: worker processes that make copies by Pillow.

Its code has two loaders, for the original and for the perturbed copies. Here one loader makes
both, by as many workers as two of eight have.
"""

import multiprocessing
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler

from baselines.pil_pipeline import PilCopies
from dcdc.runtime.environment import available_cores

_MOST_WORKERS = 16
_ENDLESS = 2**40
PREFETCH = 2
"""Batches that lie ready for each worker, as torch has it."""


class CopiesDataset(Dataset[list[Tensor]]):
    """The original copy and r perturbed ones of each image (N x H x W x C)."""

    def __init__(self, images: NDArray[np.uint8], copies: PilCopies) -> None:
        self.images = images
        self.copies = copies

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> list[Tensor]:
        return self.copies(self.images[index])


@contextmanager
def open_loader(
    dataset: CopiesDataset, batch_size: int, n_workers: int, device: torch.device
) -> Iterator[Iterator[list[Tensor]]]:
    """Batches without end: 1 + r tensors of B x C x H x W; the workers are gone afterwards."""
    loader: DataLoader[list[Tensor]] = DataLoader(
        dataset,
        batch_size,
        # An epoch's end would only add a wait.
        sampler=RandomSampler(dataset, replacement=True, num_samples=_ENDLESS),
        num_workers=n_workers,
        prefetch_factor=PREFETCH,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
        multiprocessing_context=worker_context(device),
        worker_init_fn=_leave_ctrl_c_to_the_parent,
    )
    batches = (batch for batch in loader)
    try:
        yield batches
    finally:
        batches.close()
        del loader  # the last reference: this ends the workers


def default_workers() -> int:
    return min(_MOST_WORKERS, available_cores())


def worker_context(device: torch.device) -> BaseContext:
    """A fork is quickest, but not of a process that uses CUDA, nor outside Linux."""
    if sys.platform == "linux" and device.type == "cpu" and not _uses_cuda():
        return multiprocessing.get_context("fork")
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # torch is imported once, not by every worker
    return context


def _uses_cuda() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _leave_ctrl_c_to_the_parent(_worker: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
