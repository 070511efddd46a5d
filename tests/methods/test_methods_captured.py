"""Trainings that are a CUDA graph on a GPU, with a recorder that only does all again."""

import numpy as np
import pytest

from dcdc.engine import simple_training
from dcdc.methods import find_method


class Again:
    def aside(self, function):
        function()

    def record(self, function, _generator):
        self.replay = function
        return self


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("ae", {"n_steps": 12}),
        ("dcgan", {"n_steps": 12}),
        ("adc", {"n_steps": 30}),
        ("jule", {"epochs": 3, "merged": 0.3}),
    ],
)
def test_steps_read_nothing_that_moves_away(method, settings, tiny_set, monkeypatch):
    """Neither a batch nor a number of the host: a graph would see those of its recording."""
    settings = {"batch_size": 12, **settings}
    eager = find_method(method).cluster(tiny_set, 3, 0, **settings)
    recorders = []

    def recorder_on(_):
        recorders.append(Again())
        return recorders[-1]

    monkeypatch.setattr(simple_training, "recorder_on", recorder_on)
    found = find_method(method).cluster(tiny_set, 3, 0, **settings)
    assert recorders
    np.testing.assert_array_equal(found.features, eager.features)
    np.testing.assert_array_equal(found.assignments, eager.assignments)
