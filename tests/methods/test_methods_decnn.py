"""DeCNN: codes that are sparse, an objective that falls, and a warning where it does not."""

import re

import numpy as np
import pytest
import torch

from dcdc.engine.observer import SilentObserver
from dcdc.engine.optimiser import Optimiser
from dcdc.errors import InputError
from dcdc.methods import Context, decnn, find_method

SHORT = {"n_steps": 12, "n_filters": 8, "batch_size": 16}


class Listener(SilentObserver):
    def __init__(self):
        self.notes, self.warnings, self.records = [], [], []

    def note(self, message):
        self.notes.append(message)

    def warn(self, message):
        self.warnings.append(message)

    def on_epoch(self, record):
        self.records.append(record)


def clustered(images, **settings):
    listener = Listener()
    found = decnn.cluster(images, 3, 0, Context(observer=listener), **(SHORT | settings))
    return found, listener


def test_the_objective_falls_and_few_codes_are_not_zero(tiny_set):
    found, listener = clustered(tiny_set)
    told = re.search(r"went from ([\d.]+) to ([\d.]+), and (\d+)% of", listener.notes[-1])
    before, after, used = map(float, told.groups())
    assert after < 0.9 * before
    assert used <= 15
    assert listener.warnings == []
    assert listener.records[-1]["objective"] < listener.records[0]["objective"]
    filters = found.network.filters.detach()
    torch.testing.assert_close(filters.flatten(1).norm(dim=1), torch.ones(8))
    assert filters.mean(dim=(2, 3)).abs().max() < 1e-6


def test_filters_that_learn_nothing_are_warned_of(tiny_set, monkeypatch):
    monkeypatch.setattr(Optimiser, "step", lambda _: None)
    _, listener = clustered(tiny_set)
    assert len(listener.warnings) == 1
    assert "no filter was learnt" in listener.warnings[0]


def test_a_higher_cost_uses_fewer_codes(tiny_set):
    features = [clustered(tiny_set, sparsity=cost)[0].features for cost in (0.1, 1.0)]
    assert np.count_nonzero(features[1]) < np.count_nonzero(features[0])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"filter_side": 4}, "filter_side = 4 must be odd"),
        ({"filter_side": 0}, "filter_side = 0 must be above 0"),
        ({"n_iterations": 0}, "n_iterations = 0 must be above 0"),
        ({"sparsity": 0.0}, "sparsity = 0.0 must be above 0"),
        ({"sparsity": 1e4, "n_steps": 1}, "sparsity = 10000.0 is so dear that no code is used"),
        ({"n_steps": 0}, "n_steps = 0 must be above 0"),
        ({"batch_size": 1}, "batch_size = 1 must be at least 2"),
        ({"grid": 0}, "grid = 0 must be above 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(tiny_set, settings, told):
    with pytest.raises(InputError, match=told):
        find_method("decnn").cluster(tiny_set, 3, 0, **settings)
