"""On CPU tensors: what is computed does not depend on the device."""

import numpy as np
import pytest
import torch
from sklearn.manifold import TSNE, trustworthiness

from dcdc.engine.device_t_sne import t_sne, t_sne_on
from dcdc.report import map_layout
from dcdc.report.map_layout import T_SNE, lay_out

N_STEPS = 400


@pytest.fixture(scope="module")
def points():
    """Six heaps in twenty dimensions."""
    random = np.random.default_rng(0)
    heaps = 4 * random.normal(size=(6, 20))
    return (heaps[np.arange(240) % 6] + random.normal(size=(240, 20))).astype(np.float32)


@pytest.fixture(scope="module")
def start(points):
    return (points[:, :2] - points[:, :2].mean(axis=0)).astype(np.float32) * 1e-4


@pytest.fixture(scope="module")
def places(points, start):
    return t_sne(torch.from_numpy(points), torch.from_numpy(start), 30, N_STEPS).numpy()


def divergence(points, places, perplexity=30):
    """Of the definition, with loops over points for their sharpness."""
    n = len(points)
    given = np.zeros((n, n))
    for i in range(n):
        distances = ((points[i].astype(float) - points) ** 2).sum(axis=1)
        distances[i] = np.inf
        low, high = 0.0, 1e4
        for _ in range(60):
            sharpness = (low + high) / 2
            row = np.exp(-sharpness * (distances - distances.min()))
            row /= row.sum()
            entropy = -(row[row > 0] * np.log(row[row > 0])).sum()
            low, high = (sharpness, high) if entropy > np.log(perplexity) else (low, sharpness)
        given[i] = row
    wanted = (given + given.T) / (2 * n)
    near = 1 / (1 + ((places[:, None].astype(float) - places[None]) ** 2).sum(axis=2))
    np.fill_diagonal(near, 0)
    found = near / near.sum()
    seen = wanted > 0
    return float((wanted[seen] * np.log(wanted[seen] / found[seen])).sum())


def test_it_ends_where_scikit_learns_exact_method_ends(points, start, places):
    method = TSNE(perplexity=30, init=start, max_iter=N_STEPS, method="exact", random_state=0)
    theirs = divergence(points, method.fit_transform(points))
    assert divergence(points, places) < 1.03 * theirs
    assert trustworthiness(points, places, n_neighbors=10) > 0.95


def test_the_start_alone_would_not_do(points, start):
    few = t_sne(torch.from_numpy(points), torch.from_numpy(start), 30, 1).numpy()
    method = TSNE(perplexity=30, init=start, max_iter=N_STEPS, method="exact", random_state=0)
    assert divergence(points, few) > 2 * divergence(points, method.fit_transform(points))


def test_the_same_points_have_the_same_places(points, start, places):
    again = t_sne(torch.from_numpy(points), torch.from_numpy(start), 30, N_STEPS).numpy()
    assert np.array_equal(again, places)


def test_points_that_are_the_same_are_finite():
    points, start = torch.zeros(8, 3), 1e-4 * torch.eye(8)[:, :2]
    points[4:] = 1
    assert t_sne(points, start, 2, 300).isfinite().all()


def test_the_map_of_a_report_takes_it(monkeypatch, points):
    """As on a GPU, whose answer a CPU gives here."""
    assert t_sne_on(torch.device("cpu")) is None
    monkeypatch.setattr(map_layout, "_STEPS", N_STEPS)
    usual = lay_out(points, seed=0)[T_SNE]
    asked = []

    def on_gpu(*given):
        asked.append(given)
        numbers = (torch.from_numpy(each) for each in given[:2])
        return t_sne(*numbers, *given[2:]).numpy()

    there = lay_out(points, seed=0, t_sne=on_gpu)[T_SNE]
    assert [(each[2], each[3]) for each in asked] == [(30, N_STEPS)]
    assert (there.shape, there.dtype) == (usual.shape, usual.dtype)
    assert trustworthiness(points, there, n_neighbors=10) > 0.95


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_what_the_definition_asks_for(points, start, places):
    there = t_sne_on(torch.device("cuda"))
    found = there(points, start, 30, N_STEPS)
    assert np.array_equal(found, there(points, start, 30, N_STEPS))
    assert divergence(points, found) == pytest.approx(divergence(points, places), rel=0.03)
