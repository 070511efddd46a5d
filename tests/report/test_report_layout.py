import numpy as np
import pytest

from dcdc.report import layout
from dcdc.report.layout import lay_out, layout_of


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(layout, "_STEPS", 250)


def blobs(n_images=40, n_features=6, n_blobs=2, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_blobs, n_features))
    labels = np.arange(n_images) % n_blobs
    noise = 0.05 * random.normal(size=(n_images, n_features))
    return (centres[labels] + noise).astype(np.float32), labels


def test_what_is_alike_lies_together_the_same_every_time():
    features, labels = blobs()
    layouts = lay_out(features, seed=2**62 + 1)  # as large as a run's seed may be
    assert list(layouts) == ["t-SNE", "PCA"]
    for plane in layouts.values():
        assert plane.shape == (40, 2)
        assert plane.dtype == np.float32
        centres = np.array([plane[labels == label].mean(axis=0) for label in (0, 1)])
        nearest = np.linalg.norm(plane[:, None] - centres, axis=2).argmin(axis=1)
        assert np.array_equal(nearest, labels)
    again = lay_out(features, seed=2**62 + 1)
    assert all(np.array_equal(plane, again[name]) for name, plane in layouts.items())


def test_pca_is_that_of_scikit_learn_on_rows_of_unit_length():
    from sklearn.decomposition import PCA

    features, _ = blobs(n_blobs=5)
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    theirs = PCA(2).fit_transform(units)
    ours = lay_out(features, 0)["PCA"]
    for column in range(2):
        sign = np.sign(ours[:, column] @ theirs[:, column])
        assert np.allclose(ours[:, column], sign * theirs[:, column], atol=1e-5)


def test_length_does_not_matter():
    features, _ = blobs()
    longer = features * np.linspace(1, 9, len(features), dtype=np.float32)[:, None]
    assert np.allclose(lay_out(longer, 0)["PCA"], lay_out(features, 0)["PCA"], atol=1e-5)


@pytest.mark.parametrize(
    "features",
    [np.ones((1, 4)), np.eye(4), np.ones((30, 4)), np.zeros((30, 4)), np.arange(1, 9)[:, None]],
    ids=["one image", "four images", "all equal", "all zero", "one positive feature"],
)
def test_t_sne_is_left_out_where_it_has_nothing_to_say(features):
    layouts = lay_out(features.astype(np.float32), 0)
    assert list(layouts) == ["PCA"]
    assert layouts["PCA"].shape == (len(features), 2)
    assert np.isfinite(layouts["PCA"]).all()


def test_images_that_differ_by_what_float16_rounds_are_alike():
    """As a sample keeps features: what is left of a network that answers all images the same."""
    random = np.random.default_rng(0)
    row = np.maximum(random.normal(size=64), 0)
    noisy = row * (1 + 1e-4 * random.normal(size=(40, 64)))
    kept = noisy.astype(np.float16)
    assert len(np.unique(kept, axis=0)) == 40
    layouts = lay_out(kept.astype(np.float32), 0)
    assert list(layouts) == ["PCA"]
    assert not layouts["PCA"].any()


def test_images_that_differ_a_little_more_are_laid_out():
    random = np.random.default_rng(0)
    row = np.maximum(random.normal(size=64), 0)
    kept = (row * (1 + 5e-3 * random.normal(size=(40, 64)))).astype(np.float16)
    layouts = lay_out(kept.astype(np.float32), 0)
    assert list(layouts) == ["t-SNE", "PCA"]
    assert len(np.unique(layouts["PCA"], axis=0)) == 40


@pytest.mark.parametrize("shape", [(5, 3), (20, 2), (8, 90)])
def test_few_images_and_few_or_many_features(shape):
    layouts = lay_out(np.random.default_rng(0).normal(size=shape).astype(np.float32), 0)
    assert all(np.isfinite(plane).all() for plane in layouts.values())
    assert "t-SNE" in layouts


def test_many_copies_of_few_images():
    features, _ = blobs(n_images=3, n_blobs=3)
    assert np.isfinite(lay_out(np.repeat(features, 10, axis=0), 0)["t-SNE"]).all()


def test_a_layout_is_kept_until_the_sample_changes(
    make_facts, write_run, make_sample, tmp_path, monkeypatch
):
    assignments = [0, 1, 1, 0, 0, 1]
    folder = write_run(tmp_path / "run", make_facts(assignments, n_clusters=2))
    sample = make_sample(assignments, n_clusters=2)
    first = layout_of(folder, sample, 0)
    with np.load(folder.map_file) as kept:
        assert np.array_equal(kept["rows"], sample.rows)
        assert np.array_equal(kept["PCA"], first["PCA"])
    calls = []
    monkeypatch.setattr(
        layout, "lay_out", lambda *given: calls.append(given) or lay_out(given[0], 0)
    )
    again = layout_of(folder, sample, 0)
    assert list(again) == list(first)
    assert all(np.array_equal(again[name], first[name]) for name in first)
    assert not calls
    layout_of(folder, make_sample(assignments, n_clusters=2, seed=1), 0)
    assert len(calls) == 1
    layout_of(folder, sample, 1)
    assert len(calls) == 2
    folder.map_file.write_bytes(b"torn")
    layout_of(folder, sample, 1)
    assert len(calls) == 3
    layout_of(folder, sample, 1)
    assert len(calls) == 3
