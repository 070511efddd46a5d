import numpy as np
import pytest
import torch

from dcdc.data import from_arrays
from dcdc.errors import InputError
from dcdc.methods import find_method
from dcdc.metrics import cluster_accuracy

cluster = find_method("untrained").cluster


def test_plain_kinds_are_found_without_learning(tiny_set):
    found = cluster(tiny_set, 3, 0)
    assert cluster_accuracy(tiny_set.targets, found.assignments) > 0.9
    assert found.features.shape == (48, 6)
    assert isinstance(found.network, torch.nn.Module)


def test_weights_and_copies_follow_from_the_seed(tiny_set):
    first = cluster(tiny_set, 3, 0)
    torch.manual_seed(99)
    again, other = cluster(tiny_set, 3, 0), cluster(tiny_set, 3, 1)
    assert np.array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)


@pytest.mark.parametrize("side", [8, 13, 24])
def test_colour_of_any_side(side):
    images = np.random.default_rng(0).integers(0, 256, (12, side, side, 3)).astype(np.uint8)
    assert cluster(from_arrays(images), 3, 0, width=2, n_copies=2).assignments.shape == (12,)


def test_settings_out_of_range_are_refused(tiny_set):
    with pytest.raises(InputError, match="width = 0 must be above 0"):
        cluster(tiny_set, 3, 0, width=0)
    with pytest.raises(InputError, match="n_copies = 1 must be at least 2"):
        cluster(tiny_set, 3, 0, n_copies=1)
