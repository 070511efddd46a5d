"""What every learnt method has only once it has learnt.

Each test runs twice, the second time with an optimiser that moves nothing: what the first must
reach, the second must miss by far. Images that untrained weights can tell apart say nothing of
learning, and most plain ones are such.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from dcdc.data import ImageSet, from_arrays
from dcdc.engine.optimiser import Optimiser
from dcdc.methods import METHODS, Context, dcgan, find_method
from dcdc.metrics import cluster_accuracy

NOTHING_TO_LEARN = {"k-means", "sc", "ac", "nmf", "untrained"}
"""They have no weights, or keep those they start with."""
ON_VECTORS = {"gmm", "temi", "turtle"}
"""In `test_methods_vectors_learning.py`."""
SIDE = 8


@pytest.fixture
def stop_learning(monkeypatch):
    """From now on, after so many steps of any optimiser, nothing moves."""

    def stop(after: int = 0) -> None:
        n_done, step = 0, Optimiser.step

        def counted(self: Optimiser) -> None:
            nonlocal n_done
            n_done += 1
            if n_done <= after:
                step(self)

        monkeypatch.setattr(Optimiser, "step", counted)

    return stop


@pytest.fixture(params=["learnt", "not-learnt"])
def learnt(request, stop_learning) -> bool:
    if request.param == "not-learnt":
        stop_learning()
    return request.param == "learnt"


def faint_kinds(seed: int) -> ImageSet:
    """Three shapes, each in its place, under noise a third stronger than they are.

    Four numbers tell them apart where they are the right ones: a few of 64 pixels' worth of noise
    comes along. Any four others hold more noise than shape. All pixels together tell them apart,
    too many for a code that is as small.
    """
    kinds = np.zeros((3, SIDE, SIDE))
    kinds[0, ::2], kinds[1, :, ::2], kinds[2, 2:6, 2:6] = 1, 1, 1
    kinds -= kinds.mean(axis=(1, 2), keepdims=True)
    kinds /= kinds.std(axis=(1, 2), keepdims=True)
    targets = np.arange(120) % 3
    return _with_noise(30 * kinds[targets], 40, targets, seed)


def waves(n_kinds: int, noise: float) -> Callable[[int], ImageSet]:
    """Waves down, across and, as a third kind, both, that begin anywhere; under noise.

    Where a wave begins changes every pixel, so that K-Means on pixels is right about half of the
    time.
    """

    def drawn(seed: int) -> ImageSet:
        targets = np.arange(120) % n_kinds
        starts = np.random.default_rng([seed, 1]).uniform(0, 2 * np.pi, (2, 120, 1, 1))
        places = np.mgrid[:SIDE, :SIDE][:, None] * (2 * np.pi / 4)
        down, across = np.sin(places + starts)
        of_kind = [down, across, np.sqrt(2) * down * across]
        shown = np.choose(targets[:, None, None], of_kind[:n_kinds])
        return _with_noise(60 * shown, noise, targets, seed)

    return drawn


def _with_noise(images: np.ndarray, deviation: float, targets: np.ndarray, seed: int) -> ImageSet:
    noise = np.random.default_rng(seed).normal(size=images.shape)
    return from_arrays((128 + images + deviation * noise).clip(0, 255).astype(np.uint8), targets)


@dataclass(frozen=True)
class Task:
    images: Callable[[int], ImageSet]
    settings: dict[str, Any]
    n_clusters: int = 3

    def accuracy(self, name: str, seed: int = 0) -> float:
        """Of the method's answer; images are the seed's own, too."""
        images = self.images(seed)
        answer = find_method(name).cluster(images, self.n_clusters, seed, **self.settings)
        return cluster_accuracy(images.targets, answer.assignments)


SMALL_CODE = {"n_code": 4, "width": 8, "n_steps": 100}
DEAR_CODE = {"n_filters": 5, "filter_side": 7, "sparsity": 2.0, "n_iterations": 20, "grid": 1}
"""At such a cost only filters that fit the images answer at all."""
TASKS = {
    "ae": Task(faint_kinds, SMALL_CODE),
    "dae": Task(faint_kinds, SMALL_CODE),
    "vae": Task(faint_kinds, SMALL_CODE),
    "jule": Task(faint_kinds, {"n_embedded": 4, "width": 8, "epochs": 8, "batch_size": 40}),
    "dec": Task(faint_kinds, SMALL_CODE | {"n_refining_steps": 40}),
    "adc": Task(faint_kinds, {"n_steps": 60, "width": 8, "batch_size": 40}),
    "decnn": Task(waves(3, noise=45), DEAR_CODE | {"n_steps": 50, "learning_rate": 3e-2}),
    # Of three kinds these two may keep two together: no term of theirs fills clusters evenly.
    "dac": Task(waves(2, noise=40), {"epochs": 8}, n_clusters=2),
    "dccm": Task(waves(2, noise=40), {"epochs": 6}, n_clusters=2),
    "ddc": Task(waves(3, noise=30), {"epochs": 8}),
    # Of three kinds it may merge two, which costs it little.
    "iic": Task(waves(2, noise=30), {"epochs": 14, "sub_heads": 3}, n_clusters=2),
    "pica": Task(waves(3, noise=30), {"epochs": 12}),
    "scan": Task(waves(3, noise=30), {"epochs": 8, "clustering_epochs": 8, "self_label_epochs": 1}),
    "cc": Task(waves(3, noise=30), {"epochs": 6, "changes": ("contrast.epochs=8",)}),
    "dcdc": Task(waves(3, noise=30), {"epochs": 10}),
}


LONG = {"dac", "ddc"}
"""DCCM, of the same phase, is their shorter twin."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in TASKS],
)
def test_what_untrained_weights_confuse_is_told_apart(name, learnt):
    accuracy = TASKS[name].accuracy(name)
    assert accuracy > 0.9 if learnt else accuracy < 0.75


def test_every_learnt_method_has_such_a_test():
    assert {*TASKS, "dcgan"} == set(METHODS.names()) - NOTHING_TO_LEARN - ON_VECTORS


def test_dec_grows_surer_by_its_refinement(stop_learning):
    settings = SMALL_CODE | {"n_refining_steps": 100}

    def mean_share() -> float:
        answer = find_method("dec").cluster(faint_kinds(0), 3, 0, **settings)
        return float(answer.probabilities.max(axis=1).mean())

    refined = mean_share()
    stop_learning(after=SMALL_CODE["n_steps"])  # the autoencoder's
    assert refined > mean_share() + 0.05


def test_dcgan_learns_what_real_images_are_like(learnt, tiny_set, monkeypatch):
    """Its clusters do not say so: with random filters, of which it has many, they are as good.

    Of images that neither network saw, the generator, which learns by the discriminator alone,
    makes some that are nearer than their mean; and the discriminator tells them from their own
    pixels in another order.
    """
    generators = []

    class Kept(dcgan.Generator):
        def __init__(self, *shape: int) -> None:
            super().__init__(*shape)
            generators.append(self)

    monkeypatch.setattr(dcgan, "Generator", Kept)
    settings = {"width": 8, "n_steps": 160, "batch_size": 36, "learning_rate": 3e-3}
    seen = from_arrays(tiny_set.images[:36])
    discriminator = dcgan.cluster(seen, 3, 0, Context(), **settings).network.eval()
    generator = generators[0].eval()

    draws = torch.Generator().manual_seed(0)
    real = torch.from_numpy(tiny_set.images[36:].copy()).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        made = generator(dcgan.draw_noise(300, draws))
        error = torch.cdist(real.flatten(1), made.flatten(1)).square().amin(dim=1).mean()
        error_of_mean = (real - real.mean(dim=0)).square().flatten(1).sum(dim=1).mean()
        shuffled = real.flatten(1)[:, torch.randperm(SIDE * SIDE, generator=draws)].view_as(real)
        told = (discriminator(real)[:, None] > discriminator(shuffled)).float().mean()
    if learnt:
        assert error < 0.5 * error_of_mean
        assert told > 0.95
    else:
        assert error > error_of_mean
        assert told < 0.8
