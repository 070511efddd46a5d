"""JULE's periods and partners, and what it refuses."""

import numpy as np
import pytest
import torch

from dcdc.data.store import StreamedStore
from dcdc.errors import InputError
from dcdc.methods import find_method, jule, training_context
from dcdc.methods.jule import Clusters, periods


def test_nine_tenths_of_the_clusters_go_in_a_period_until_few_are_left():
    assert periods(430, 10, 0.9) == [43, 10]
    assert periods(43, 10, 0.5) == [22, 11, 10]
    assert periods(12, 10, 0.01) == [11, 10]
    assert periods(10, 10, 0.9) == [10]


def test_a_partner_is_any_one_of_the_same_cluster():
    labels = np.array([2, 0, 2, 1, 2, 0])
    clusters = Clusters(labels, torch.device("cpu"))
    assert clusters.number == 3
    draws = torch.Generator().manual_seed(0)
    found = torch.stack([clusters.partners(torch.arange(6), draws) for _ in range(200)])
    for image, label in enumerate(labels):
        own = np.flatnonzero(labels == label)
        assert found[:, image].unique().tolist() == own.tolist()
        counts = found[:, image].bincount(minlength=6)[own]
        assert counts.min() > 0.6 * 200 / len(own)


def test_images_that_are_streamed_give_the_same_answer(tiny_set, monkeypatch):
    settings = {"epochs": 1, "batch_size": 16}
    resident = find_method("jule").cluster(tiny_set, 3, 0, **settings)
    monkeypatch.setattr(training_context, "open_store", StreamedStore)
    monkeypatch.setattr(jule, "open_store", StreamedStore)
    streamed = find_method("jule").cluster(tiny_set, 3, 0, **settings)
    np.testing.assert_allclose(streamed.features, resident.features, rtol=1e-5, atol=1e-6)
    assert np.array_equal(streamed.assignments, resident.assignments)


def test_as_many_clusters_as_images_are_the_images(tiny_set):
    found = find_method("jule").cluster(tiny_set, 48, 0, epochs=1)
    assert sorted(found.assignments.tolist()) == list(range(48))


@pytest.mark.parametrize("setting", ["n_neighbours", "margin", "n_embedded", "width", "epochs"])
def test_nothing_of_something_is_refused(setting, tiny_set):
    with pytest.raises(InputError, match=rf"^{setting} = 0 must be above 0$"):
        find_method("jule").cluster(tiny_set, 3, 0, **{setting: 0})


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_cluster_or_all_of_them_cannot_go(share, tiny_set):
    with pytest.raises(InputError, match=f"^merged = {share} must be above 0 and below 1$"):
        find_method("jule").cluster(tiny_set, 3, 0, merged=share)
