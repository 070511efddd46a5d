from dataclasses import replace

import numpy as np
import pytest
import torch

from dcdc.data import from_arrays
from dcdc.errors import InputError
from dcdc.methods import Context
from dcdc.methods.training_context import (
    LARGE,
    SMALL,
    Budget,
    TrainingContext,
    device_leading_directions,
    k_means,
    leading_directions,
    whitened,
)


def test_what_never_varies_leads_nowhere():
    codes = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    still = np.concatenate([codes, np.full((50, 1), 7, np.float32)], axis=1)
    np.testing.assert_allclose(
        abs(leading_directions(still, 2)), abs(leading_directions(codes, 2)), atol=1e-4
    )


def test_whitened_codes_vary_about_alike_but_noise_stays_small():
    rng = np.random.default_rng(0)
    codes = (rng.normal(size=(500, 3)) * [10, 3, 0.01] + 5).astype(np.float32)
    turned = codes @ np.linalg.qr(rng.normal(size=(3, 3)))[0].astype(np.float32)
    white = whitened(turned)
    assert white.dtype == np.float32
    deviations = np.sort(white.std(axis=0))
    assert deviations[0] < 0.02
    assert (deviations[1:] > 0.85).all()
    distances = lambda rows: np.linalg.norm(rows[:, None] - rows[None], axis=2)  # noqa: E731
    np.testing.assert_allclose(distances(white), distances(whitened(codes)), atol=1e-2)


def test_leading_directions_of_many_features_are_the_same(monkeypatch):
    random = np.random.default_rng(0)
    features = random.normal(size=(60, 3)) @ random.normal(size=(3, 20)) * 10
    features = (features + 0.01 * random.normal(size=(60, 20))).astype(np.float32)
    exact = leading_directions(features, 3)[:, ::-1]
    monkeypatch.setattr("dcdc.methods.training_context._MOST_FEATURES", 10)
    np.testing.assert_allclose(abs(leading_directions(features, 3)), abs(exact), atol=1e-2)


def test_leading_directions_by_products_alone_are_the_same():
    random = np.random.default_rng(0)
    kinds = random.normal(size=(300, 6)) * [32, 16, 8, 4, 2, 1]
    features = kinds @ random.normal(size=(6, 90)) + 0.1 * random.normal(size=(300, 90))
    features = np.concatenate([features, np.full((300, 1), 7.0)], axis=1).astype(np.float32)
    exact = leading_directions(features.copy(), 5)
    found = device_leading_directions(features.copy(), 5, torch.device("cpu"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(abs(found), abs(exact), atol=2e-3 * abs(exact).max())
    few = device_leading_directions(features[:3].copy(), 64, torch.device("cpu"))
    assert few.shape == (3, 3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_k_means_on_a_gpu_finds_the_same_groups():
    truth = np.arange(600) % 3
    noise = np.random.default_rng(0).normal(size=(600, 3))
    codes = (10 * np.eye(3)[truth] + noise).astype(np.float32)
    found, centres = k_means(codes, 3, 0, torch.device("cuda"))
    assert found.dtype == np.int64
    assert len({(a, t) for a, t in zip(found, truth, strict=True)}) == 3
    np.testing.assert_allclose(centres[found], codes, atol=8)


def test_leading_directions_hold_the_most_of_what_varies():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(200, 1))
    features = (shared + 0.01 * rng.normal(size=(200, 5))).astype(np.float32)
    found = leading_directions(features, 2)
    assert found.shape == (200, 2)
    assert abs(np.corrcoef(found[:, -1], shared[:, 0])[0, 1]) > 0.99
    assert found[:, -1].var() > 100 * found[:, 0].var()


def test_k_means_finds_groups_and_their_centres():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    codes = (10 * np.eye(3)[truth] + rng.normal(size=(60, 3))).astype(np.float32)
    assignments, centres = k_means(codes, 3, seed=0)
    assert assignments.dtype == np.int64
    for cluster in range(3):
        np.testing.assert_allclose(
            centres[cluster], codes[assignments == cluster].mean(0), rtol=1e-4
        )
    assert len({(a, t) for a, t in zip(assignments, truth, strict=True)}) == 3


def test_a_batch_is_at_most_all_images_and_at_least_two(tiny_set):
    assert TrainingContext.open(tiny_set, 0, Context(), 1000).batch_size == 48
    with pytest.raises(InputError, match="batch_size = 1 must be at least 2"):
        TrainingContext.open(tiny_set, 0, Context(), 1)


def test_what_is_left_open_follows_from_images_and_device(tiny_set):
    training = TrainingContext.open(tiny_set, 0, Context(), 10)
    assert training.budget(None, None, None) == SMALL
    assert training.budget(7, None, 0.5) == Budget(7, SMALL.width, 0.5, cosine_decay=False)
    assert training.epochs(40) == 10
    on_gpu = replace(training, device=torch.device("cuda"))
    assert on_gpu.budget(None, None, None) == SMALL  # tiny images
    large = from_arrays(np.arange(2 * 32 * 32, dtype=np.uint8).reshape(2, 32, 32, 1))
    assert replace(on_gpu, image_set=large).budget(None, None, None) == LARGE
    with pytest.raises(InputError, match="n_steps = 0 must be above 0"):
        training.budget(0, None, None)
