"""The reference's step and its loader, with real worker processes."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from baselines import pil_operations, reference, reference_loader
from baselines.batches import batch_size, copies_shape, image_shape, n_copies
from baselines.reference import build_reference_step, pil_copies, reference_trials
from baselines.reference_loader import (
    CopiesDataset,
    default_workers,
    open_loader,
    worker_context,
)
from dcdc.config import AugmentConfig


@pytest.fixture
def loader(case, cpu):
    dataset = CopiesDataset(case.image_set.images, pil_copies(case))
    return open_loader(dataset, batch_size(case), 2, cpu)


@pytest.fixture(autouse=True)
def others():
    """Processes that other tests left running."""
    BEFORE.clear()
    BEFORE.update(child.pid for child in multiprocessing.active_children())


BEFORE: set[int] = set()


def workers() -> set[int]:
    return {child.pid for child in multiprocessing.active_children()} - BEFORE


def no_worker_left() -> bool:
    return not workers()


def test_a_batch_holds_the_copies_that_are_counted(case, loader):
    with loader as batches:
        for _ in range(3):
            batch = next(batches)
            assert [copy.shape for copy in batch] == [(4, *image_shape(case))] * 3
            assert sum(map(len, batch)) == n_copies(case) == 12
            assert all(copy.is_contiguous() for copy in batch)
        assert len(workers()) == 2
    assert no_worker_left()


def test_the_copies_are_of_the_same_images(digits, cpu):
    """Without perturbations every copy of an image is the image."""
    images = np.arange(200, dtype=np.uint8)[:, None, None, None].repeat(8, 1).repeat(8, 2)
    unperturbed = replace(digits, config=replace(digits.config, augment=AugmentConfig()))
    with open_loader(CopiesDataset(images, pil_copies(unperturbed)), 16, 1, cpu) as batches:
        original, *perturbed = next(batches)
    assert len(original.unique()) > 4
    assert all(torch.equal(copy, original) for copy in perturbed)


def test_workers_beside_cuda_are_no_forks_of_it(digits, cpu, monkeypatch):
    context = worker_context(torch.device("cuda"))
    assert context.get_start_method() in ("forkserver", "spawn")
    monkeypatch.setattr(reference_loader, "worker_context", lambda _device: context)
    dataset = CopiesDataset(digits.image_set.images, pil_copies(digits))
    with open_loader(dataset, batch_size(digits), 2, cpu) as batches:
        assert sum(map(len, next(batches))) == n_copies(digits)
    assert no_worker_left()


def test_ctrl_c_is_for_the_parent_which_ends_the_workers(loader):
    with pytest.raises(KeyboardInterrupt), loader as batches:
        for _ in range(2):
            next(batches)  # one of each worker: both have begun
        for worker in workers():  # a terminal tells the whole group
            os.kill(worker, signal.SIGINT)
        for _ in range(8):
            next(batches)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    assert no_worker_left()


def test_the_step_learns(case, cpu):
    torch.manual_seed(0)
    step = build_reference_step(case, cpu)
    copies = list(torch.randn(copies_shape(case)).split(batch_size(case)))
    losses = [step(copies).item() for _ in range(8)]
    assert losses[-1] < losses[0]


def test_each_trial_counts_a_whole_batch_of_copies(case, cpu):
    found = {
        trial.name: trial.measure() for trial in reference_trials(case, cpu, 0.02, n_workers=1)
    }
    assert list(found) == [
        reference.STEP_ALONE,
        reference.LOADER_ALONE,
        reference.STEP_AND_LOADER,
    ]
    for measured in found.values():
        assert (measured.images, measured.copies) == (4, 12)
        rate = measured.per_second(measured.copies)
        assert rate == pytest.approx(12 / (measured.timing.ms / 1000))
    assert found[reference.LOADER_ALONE].details == {"n_workers": 1}
    assert no_worker_left()


def test_a_worker_that_dies_is_an_error_and_no_hang(digits, cpu, monkeypatch):
    monkeypatch.setattr(pil_operations, "to_tensor", lambda _image: os._exit(1))
    trials = reference_trials(digits, cpu, 0.02, n_workers=2)
    next(trials).measure()  # needs no worker
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(trials).measure()
    with pytest.raises(RuntimeError, match="workers have stopped"):
        next(trials).measure()
    trials.close()
    assert no_worker_left()


def test_default_workers_are_two_loaders_of_eight_or_the_cores(monkeypatch):
    for cores, expected in ((2, 2), (16, 16), (64, 16)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cores: set(range(n)))
        assert default_workers() == expected
