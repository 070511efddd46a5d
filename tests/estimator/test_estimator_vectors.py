"""Feature vectors through every method of the estimator, and from files as from arrays."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dcdc import DCDC, InputError
from dcdc.data import from_vectors
from dcdc.metrics import cluster_accuracy

SHORT = {"epochs": 3, "settings": {"network.sub_heads": 3}}


def blobs(n_rows=120, n_features=12, seed=0) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds that lie in other directions and overlap a little."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(3, n_features)) * 3
    targets = np.arange(n_rows) % 3
    return (centres[targets] + random.normal(size=(n_rows, n_features))).astype(np.float32), targets


ROWS, TARGETS = blobs()


def vectors(**changes) -> DCDC:
    return DCDC(**({"n_clusters": 3, "device": "cpu"} | SHORT | changes))


@pytest.fixture(scope="module")
def model():
    return vectors().fit(ROWS)


def test_every_method_answers_for_rows(model):
    assert cluster_accuracy(TARGETS, model.labels_) > 0.95
    assert np.array_equal(model.predict(ROWS), model.labels_)
    probabilities = model.predict_proba(ROWS)
    assert probabilities.shape == (120, 3)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert model.transform(ROWS).shape == (120, 12)
    assert model.score(ROWS, TARGETS) == cluster_accuracy(TARGETS, model.labels_)
    assert model.score(ROWS) > 0.2
    assert model.n_features_in_ == 12
    assert model.names_ is None
    assert (model.config_.network.backbone, model.config_.data.n_features) == ("vectors", 12)


def test_new_rows_are_answered_one_by_one_as_together(model):
    new, targets = blobs(30, seed=7)
    together = model.predict(new)
    assert cluster_accuracy(targets, together) > 0.9
    assert [int(model.predict(row[None])[0]) for row in new] == together.tolist()
    assert model.predict(np.repeat(new[:1], 4, axis=0)).tolist() == [together[0]] * 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_rows", [150, 3, 2])
def test_few_rows_are_enough(n_rows):
    rows, _ = blobs(n_rows)
    model = vectors(n_clusters=2, settings={}).fit(rows)
    assert set(model.labels_) <= {0, 1}
    assert model.config_.train.threads == 1  # a step is short


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_one_cluster_of_equal_rows_is_everything():
    model = vectors(n_clusters=1).fit(np.ones((6, 4)))
    assert model.labels_.tolist() == [0] * 6
    with pytest.raises(InputError, match="the 6 rows of X are all equal"):
        vectors().fit(np.ones((6, 4)))


def test_a_seed_fixes_the_answer(model):
    again = clone(model).fit(ROWS)
    assert np.array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))


@pytest.mark.parametrize(
    "travelled", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy]
)
def test_a_fitted_model_travels(model, travelled):
    other = travelled(model)
    assert np.array_equal(other.predict_proba(ROWS), model.predict_proba(ROWS))


def test_a_warm_start_goes_on_and_refuses_another_width():
    model = vectors(warm_start=True).fit(ROWS)
    middle = model.model_.network.directions.middle.clone()
    model.set_params(epochs=2).fit(ROWS + 5)
    assert model.n_iter_ == 5
    assert torch.equal(model.model_.network.directions.middle, middle)
    with pytest.raises(InputError, match="features was 12, is 11; keep it, or set warm_start=Fals"):
        model.fit(ROWS[:, 1:])


@pytest.mark.parametrize("criterion", ["loss", "agreement", "confidence"])
def test_several_starts_are_chosen_among(criterion):
    model = vectors(n_init=2, n_init_criterion=criterion).fit(ROWS)
    assert np.isfinite(model.init_scores_).all()
    best = vectors(random_state=model.config_.train.seed).fit(ROWS)
    assert np.array_equal(best.labels_, model.labels_)


def test_copies_stand_beside_their_rows_and_are_split_with_them():
    other, _ = blobs(seed=3)
    alone = vectors(settings={"network.sub_heads": 1}).fit(ROWS)
    paired = vectors(settings={"network.sub_heads": 1}).fit(ROWS, copies=other)
    assert paired.loss_curve_ != alone.loss_curve_
    assert cluster_accuracy(TARGETS, paired.labels_) > 0.95
    own = {"network.sub_heads": 1, "heads.neighbours": 0}  # possible with copies alone
    assert vectors(settings=own).fit(ROWS, copies=other).labels_.shape == (120,)
    assert np.array_equal(vectors().fit_predict(ROWS, copies=other).shape, (120,))
    search = GridSearchCV(vectors(), {"n_clusters": [2, 3]}, cv=2).fit(ROWS, copies=other)
    assert search.best_params_["n_clusters"] in (2, 3)


def test_a_pipeline_scales_a_table_first():
    pipeline = make_pipeline(StandardScaler(), vectors())
    assert cluster_accuracy(TARGETS, pipeline.fit_predict(ROWS)) > 0.95


def test_a_file_is_read_as_the_command_line_reads_it(model, tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, ROWS)
    for given in (path, str(path)):
        by_file = vectors().fit(given)
        assert np.array_equal(by_file.labels_, model.labels_)
    assert by_file.config_.data.source == str(path)
    assert by_file.names_ == list(from_vectors(ROWS).names)
    assert np.array_equal(by_file.predict(path), by_file.predict(ROWS))
    np.savez(tmp_path / "with.npz", vectors=ROWS, targets=TARGETS)
    assert len(vectors(n_clusters=None).fit(tmp_path / "with.npz").cluster_sizes_) == 3


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        (ROWS, {"value_range": (0, 1)}, r"^value_range=\(0, 1\) is for images, and rows of X are"),
        (
            ROWS,
            {"preset": "digits", "settings": None},
            r"^preset='digits' is for images, .*image_shape, such as",
        ),
        (ROWS, {"fine_tune": True}, "^fine_tune=True has no meaning with the backbone vectors"),
        (ROWS, {"backbone": "small"}, "go past the backbone small: .* leave backbone out"),
        (
            ROWS,
            {"n_clusters": None},
            "give n_clusters='auto' where .* n_clusters=8 for a first",
        ),
        (ROWS[:2], {}, "n_samples=2 cannot fill n_clusters=3"),
        ((ROWS, ROWS), {}, r"X is a tuple of two matrices: .*fit\(X, copies=X2\)"),
        ("nowhere/", {}, "data source 'nowhere/' does not exist"),
        (ROWS, {"backbone": 7}, "backbone is a int: give a name such as"),
    ],
)
def test_wrong_use_is_one_line(given, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        vectors(**changes).fit(given)
    assert "\n" not in str(caught.value)


def test_another_width_is_refused_as_scikit_learn_words_it(model):
    with pytest.raises(ValueError, match="X has 11 features, but DCDC is expecting 12 features"):
        model.predict(ROWS[:, 1:])
    with pytest.raises(InputError, match="trained on vectors of 12 features, these have 11"):
        model.predict(from_vectors(ROWS[:, 1:]))
