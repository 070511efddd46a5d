import numpy as np
import pytest
import torch

from dcdc.data import from_arrays
from dcdc.data.store import StreamedStore, open_store
from dcdc.engine import sample as sampling
from dcdc.engine.assignment import Assigned
from dcdc.engine.sample import choose_balanced, choose_rows, every_feature, take_sample
from dcdc.prepare.assembly import build_model
from dcdc.prepare.resolve import perturbed_copy, resolve


@pytest.fixture
def parts(tiny_config, tiny_set):
    config = resolve(tiny_config, tiny_set)
    model = build_model(config)
    return model, open_store(tiny_set.images, model.device), perturbed_copy(config, 1)


def test_everything_of_a_small_set(parts, tiny_set):
    model, store, copy = parts
    sample = take_sample(model, store, copy, seed=3)
    assert sample.rows.dtype == np.int64
    assert sample.rows.tolist() == list(range(48))
    assert sample.features.dtype == np.float16
    features = model.transform(tiny_set.images)
    assert np.allclose(sample.features, features, rtol=1e-3, atol=1e-4)
    assert sample.assign.dtype == np.float32
    assert np.array_equal(sample.assign, model.predict_proba(tiny_set.images))
    assert sample.view_rows.tolist() == list(range(48))
    assert np.array_equal(sample.view_assign, sample.assign)
    assert sample.view_assign_perturbed.shape == (48, 3)
    assert np.allclose(sample.view_assign_perturbed.sum(axis=1), 1, atol=1e-5)
    assert not np.array_equal(sample.view_assign_perturbed, sample.view_assign)


def test_a_part_of_a_large_set_is_the_same_for_the_same_seed(parts, tiny_set):
    model, store, copy = parts

    def take(seed):
        return take_sample(model, store, copy, seed, most_images=20, most_views=7)

    sample, again, other = take(0), take(0), take(1)
    for ours, theirs in zip(sample, again, strict=True):
        assert np.array_equal(ours, theirs)
    assert not np.array_equal(sample.rows, other.rows)
    assert (np.diff(sample.rows) > 0).all()
    assert len(sample.rows) == len(sample.features) == len(sample.assign) == 20
    assert len(sample.view_rows) == 7
    assert set(sample.view_rows) <= set(sample.rows)
    assert np.allclose(sample.assign, model.predict_proba(tiny_set.images)[sample.rows], atol=1e-6)
    places = np.searchsorted(sample.rows, sample.view_rows)
    assert np.array_equal(sample.view_assign, sample.assign[places])


def test_a_streamed_set_gives_the_same_and_extra_images_are_left_out(parts, tiny_set):
    model, store, copy = parts
    streamed = StreamedStore(tiny_set.images, model.device, tiny_set.images[:5])
    ours = take_sample(model, streamed, copy, 0, most_images=20)
    theirs = take_sample(model, store, copy, 0, most_images=20)
    for left, right in zip(ours, theirs, strict=True):
        assert np.array_equal(left, right)


def test_perturbed_views_are_the_runs_own_perturbations(parts):
    """Without any perturbation a copy is its original; the network stays in evaluation mode."""
    model, store, _ = parts
    from dcdc.augment import PerturbedCopy

    model.network.train()
    sample = take_sample(model, store, PerturbedCopy(), 0)
    assert model.network.training
    assert np.allclose(sample.view_assign_perturbed, sample.view_assign, atol=1e-6)


def test_colour_images(tiny_config):
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), np.uint8)
    image_set = from_arrays(images)
    config = resolve(tiny_config, image_set)
    model = build_model(config)
    store = open_store(image_set.images, model.device)
    sample = take_sample(model, store, perturbed_copy(config, 1), 0)
    assert len(sample.features) == 20


def test_features_beyond_half_precision_stay_finite(parts):
    model, store, copy = parts
    look_at = model.look_at
    model.look_at = lambda *given: (look_at(*given)[0] * 1e9, look_at(*given)[1])
    assert np.isfinite(take_sample(model, store, copy, 0).features).all()


def test_rows_are_all_or_a_seeded_part():
    assert choose_rows(3, 5, 0).tolist() == [0, 1, 2]
    rows = choose_rows(1000, 50, 0)
    assert len(set(rows.tolist())) == 50
    assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("n_clusters", [1, 3, 40, 200])
def test_views_are_balanced_over_clusters(n_clusters):
    random = np.random.default_rng(0)
    # Clusters of very different sizes, and every third one empty.
    clusters = [c for c in range(n_clusters) if c % 3 != 1]
    assignments = random.permutation(np.repeat(clusters, [1 + 7 * (c % 5) for c in clusters]))
    chosen = choose_balanced(assignments, 60, 0)
    assert (np.diff(chosen) > 0).all()
    assert len(chosen) == min(60, len(assignments))
    have = np.bincount(assignments, minlength=n_clusters)
    taken = np.bincount(assignments[chosen], minlength=n_clusters)
    # Nobody has two more than another who has images left.
    for cluster in range(n_clusters):
        if taken[cluster] < have[cluster]:
            assert taken.max() <= taken[cluster] + 1
    assert np.array_equal(chosen, choose_balanced(assignments, 60, 0))


def test_the_runner_up_is_the_second_of_each_row(monkeypatch):
    monkeypatch.setattr("dcdc.engine.assignment._ROWS_AT_ONCE", 4)
    rows = torch.softmax(torch.randn(11, 5, generator=torch.manual_seed(0)), 1).numpy()
    rows[3] = [0.5, 0.5, 0, 0, 0]
    assigned = Assigned(rows)
    second, shares = assigned.runner_up()
    for row, best, place, share in zip(rows, assigned.assignments, second, shares, strict=True):
        assert place != best
        assert share == row[place] == sorted(row)[-2]


def test_features_of_every_image_where_the_sample_has_some_alone(parts, tiny_set, monkeypatch):
    model, store, _ = parts
    assert every_feature(model, store) is None
    monkeypatch.setattr(sampling, "MOST_IMAGES", 20)
    monkeypatch.setattr(sampling, "_ROWS_AT_ONCE", 7)
    found = every_feature(model, store)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, model.transform(tiny_set.images), rtol=1e-2, atol=1e-3)
    assert every_feature(model, store, most_bytes=found.nbytes - 1) is None
    streamed = StreamedStore(tiny_set.images, model.device, tiny_set.images[:5])
    np.testing.assert_allclose(every_feature(model, streamed), found, rtol=1e-2, atol=1e-3)
