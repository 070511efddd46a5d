"""What every learnt method has only once it has learnt.

Each test runs twice, the second time with an optimiser that moves nothing: what the first must
reach, the second must miss by far. Images that untrained weights can tell apart say nothing of
learning, and most plain ones are such.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from dcdc.data import ImageSet, from_arrays
from dcdc.engine.optimiser import Adam
from dcdc.methods import METHODS, Context, dcgan, find_method
from dcdc.metrics import cluster_accuracy

NOTHING_TO_LEARN = {"k-means", "sc", "ac", "nmf", "untrained"}
"""They have no weights, or keep those they start with."""
SIDE = 8


@pytest.fixture
def stop_learning(monkeypatch):
    """From now on, after so many steps of any optimiser, nothing moves."""

    def stop(after: int = 0) -> None:
        n_done, step = 0, Adam.step

        def counted(self: Adam) -> None:
            nonlocal n_done
            n_done += 1
            if n_done <= after:
                step(self)

        monkeypatch.setattr(Adam, "step", counted)

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
    seeds: tuple[int, ...] = field(default=(0,))

    def accuracy(self, name: str) -> float:
        """The mean over the seeds, each of which has images of its own."""
        method, found = find_method(name), []
        for seed in self.seeds:
            images = self.images(seed)
            answer = method.cluster(images, self.n_clusters, seed, **self.settings)
            found.append(cluster_accuracy(images.targets, answer.assignments))
        return float(np.mean(found))


SMALL_CODE = {"n_code": 4, "width": 8, "n_steps": 100}
FEW_FILTERS = {"n_filters": 3, "filter_side": 7, "sparsity": 1.0, "grid": 1}
TASKS = {
    "ae": Task(faint_kinds, SMALL_CODE),
    "dae": Task(faint_kinds, SMALL_CODE),
    "vae": Task(faint_kinds, SMALL_CODE),
    "dec": Task(faint_kinds, SMALL_CODE | {"n_refining_steps": 40}),
    # Of three random filters one may fit by chance.
    "decnn": Task(
        waves(3, noise=60), FEW_FILTERS | {"n_steps": 40, "learning_rate": 3e-2}, seeds=(0, 1, 2)
    ),
    # Of three kinds it may merge two, which loses it little.
    "iic": Task(waves(2, noise=40), {"epochs": 14, "sub_heads": 2}, n_clusters=2),
    "pica": Task(waves(3, noise=30), {"epochs": 12}),
    "dcdc": Task(waves(3, noise=30), {"epochs": 10}),
}


@pytest.mark.parametrize("name", TASKS)
def test_what_untrained_weights_confuse_is_told_apart(name, learnt):
    accuracy = TASKS[name].accuracy(name)
    assert accuracy > 0.9 if learnt else accuracy < 0.75


def test_every_learnt_method_has_such_a_test():
    assert {*TASKS, "dcgan"} == METHODS.keys() - NOTHING_TO_LEARN


def test_dec_grows_surer_by_its_refinement(stop_learning):
    settings = SMALL_CODE | {"n_refining_steps": 150}

    def mean_share() -> float:
        answer = find_method("dec").cluster(faint_kinds(0), 3, 0, **settings)
        return float(answer.probabilities.max(axis=1).mean())

    refined = mean_share()
    stop_learning(after=SMALL_CODE["n_steps"])  # the autoencoder's
    assert refined > mean_share() + 0.08


def test_dcgan_learns_what_real_images_are_like(learnt, tiny_set, monkeypatch):
    """Its clusters say little: random filters, of which every layer has many, do as well.

    The generator learns from the discriminator alone. It comes nearer to images it never saw than
    their mean does, which the discriminator takes for real, other than images of nothing.
    """
    generators = []

    class Kept(dcgan.Generator):
        def __init__(self, *shape: int) -> None:
            super().__init__(*shape)
            generators.append(self)

    monkeypatch.setattr(dcgan, "Generator", Kept)
    seen, unseen = (
        from_arrays(tiny_set.images[half], tiny_set.targets[half])
        for half in (slice(0, 36), slice(36, 48))
    )
    settings = {"width": 16, "n_steps": 120, "batch_size": 36, "learning_rate": 3e-3}
    discriminator = dcgan.cluster(seen, 3, 0, Context(), **settings).network.eval()
    generator = generators[0].eval()

    draws = torch.Generator().manual_seed(0)
    real = torch.from_numpy(unseen.images.copy()).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        made = generator(torch.randn(300, dcgan.N_NOISE, generator=draws))
        errors = torch.cdist(real.flatten(1), made.flatten(1)).square().amin(dim=1).mean()
        mean_s_error = (real - real.mean(dim=0)).square().flatten(1).sum(dim=1).mean()
        pixels = torch.randperm(SIDE * SIDE, generator=draws)
        of_nothing = [
            real.flatten(1)[:, pixels].view_as(real),
            torch.rand(real.shape, generator=draws),
            torch.full_like(real, 0.5),
        ]
        logits = discriminator(real)
        told = [
            (logits[:, None] > discriminator(false)[None]).float().mean() for false in of_nothing
        ]
    if learnt:
        assert errors < 0.5 * mean_s_error
        assert min(told) > 0.95
    else:  # a discriminator that never learnt may tell them apart by chance
        assert errors > mean_s_error
