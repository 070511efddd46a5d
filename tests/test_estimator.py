import numpy as np
import pytest
from sklearn.base import clone

from dcdc import DCDC, InputError
from dcdc.metrics import cluster_accuracy

SETTINGS = {"train.over_clustering_first": 2, "network.over_clusters": 6, "train.n_repeats": 2}


def estimator(**changes) -> DCDC:
    given = {"n_clusters": 3, "epochs": 4, "batch_size": 16, "device": "cpu", "settings": SETTINGS}
    return DCDC(**(given | changes))


def test_fit_predict_finds_the_kinds_and_predict_agrees(tiny_set):
    model = estimator()
    labels = model.fit_predict(tiny_set.images)
    assert cluster_accuracy(tiny_set.targets, labels) > 0.9
    assert np.array_equal(model.predict(tiny_set.images), labels)
    assert model.n_iter_ == len(model.loss_curve_) == 4


def test_a_seed_fixes_the_answer_and_a_clone_gives_it_again(tiny_set):
    model = estimator(random_state=3)
    first = model.fit_predict(tiny_set.images)
    assert np.array_equal(clone(model).fit_predict(tiny_set.images), first)


def test_the_constructor_only_stores_and_fit_validates(tiny_set):
    model = estimator(n_clusters=1)
    with pytest.raises(InputError, match="n_clusters = 1 must be at least 2"):
        model.fit(tiny_set.images)
    with pytest.raises(ValueError, match="unknown preset"):
        estimator(preset="nothing").fit(tiny_set.images)


def test_predicting_before_fitting_is_refused(tiny_set):
    with pytest.raises(Exception, match="not fitted yet"):
        estimator().predict(tiny_set.images)
