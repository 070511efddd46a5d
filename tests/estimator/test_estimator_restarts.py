import numpy as np
import pytest

from dcdc.config import RunConfig
from dcdc.estimator.restarts import CRITERIA, Fitted, criterion_of


def with_answer(labels, confidence=0.9, loss=0.0) -> Fitted:
    probabilities = np.full((len(labels), 2), 1 - confidence, np.float32)
    probabilities[np.arange(len(labels)), labels] = confidence
    return Fitted(RunConfig(), {}, probabilities, [], {}, held_out_loss=loss)


def test_each_criterion_is_highest_where_it_should_be():
    found = [
        with_answer([0, 0, 1, 1], confidence=0.7, loss=3.0),
        with_answer([1, 1, 0, 0], confidence=0.8, loss=1.0),
        with_answer([0, 1, 0, 1], confidence=0.9, loss=2.0),
    ]
    assert criterion_of(found, "loss").argmax() == 1
    assert criterion_of(found, "confidence").argmax() == 2
    agreement = criterion_of(found, "agreement")
    assert agreement[0] == agreement[1] > agreement[2]  # the names of clusters do not matter


@pytest.fixture(scope="module")
def images(tiny_file):
    return np.load(tiny_file)["images"]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_best_of_several_trainings_is_kept(estimator, images, criterion):
    model = estimator(n_init=2, n_init_criterion=criterion, epochs=3).fit(images)
    best = int(model.init_scores_.argmax())
    assert len(model.init_scores_) == 2
    if best == 0:
        single = estimator(epochs=3).fit(images)
        assert np.array_equal(model.predict_proba(images), single.predict_proba(images))
    else:
        assert model.config_.train.seed != 0
    assert np.array_equal(model.predict(images), model.labels_)


@pytest.mark.slow
def test_processes_give_what_one_gives(estimator, images):
    one = estimator(n_init=3).fit(images)
    several = estimator(n_init=3, n_jobs=2).fit(images)
    assert np.array_equal(one.init_scores_, several.init_scores_)
    assert np.array_equal(one.predict_proba(images), several.predict_proba(images))
