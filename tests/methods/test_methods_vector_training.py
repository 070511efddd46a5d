"""What TEMI and TURTLE are given."""

import numpy as np
import pytest
import torch

from dcdc.data import VectorSet
from dcdc.methods import Context, vector_training
from dcdc.methods.vector_training import VectorTraining


@pytest.fixture
def training() -> VectorTraining:
    rows = np.random.default_rng(0).normal(3, 1, size=(50, 9)).astype(np.float32)
    vectors = VectorSet(rows, [str(number) for number in range(50)], copies=2 * rows[:, ::-1])
    return VectorTraining.open(vectors, 0, Context("cpu"), batch_size=64, n_components=5)


def test_spaces_are_directions_of_few_components(training):
    assert [space.shape for space in training.spaces] == [(50, 5), (50, 5)]
    for space in training.spaces:
        np.testing.assert_allclose(space.norm(dim=1), 5**0.5, rtol=1e-5)
    assert training.batch_size == 50


@pytest.mark.parametrize("most", [100, 20])
def test_neighbours_are_the_nearest_of_those_that_are_looked_at(training, most, monkeypatch):
    monkeypatch.setattr(vector_training, "MOST_CANDIDATES", {"cpu": most})
    monkeypatch.setattr(vector_training, "_ROWS", 7)
    looked_at = range(50) if most > 50 else np.linspace(0, 49, 20).astype(int).tolist()
    found = training.neighbours(3)
    cosines = torch.nn.functional.normalize(training.vectors, dim=1)
    cosines = (cosines @ cosines.T).tolist()
    for row in range(50):
        others = sorted((c for c in looked_at if c != row), key=lambda c: -cosines[row][c])
        assert found[row].tolist() == others[:3]


def test_there_are_no_more_neighbours_than_other_images(training):
    assert training.neighbours(80).shape == (50, 49)
