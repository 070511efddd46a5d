import numpy as np
import pytest

from dcdc.config import RunConfig
from dcdc.engine.trainer import Trainer
from dcdc.estimator import restarts
from dcdc.estimator.preparation import prepare
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


SMALL_RECIPE = {
    "phases": ("discriminate", "frozen_heads", "self_label"),
    "discriminate.epochs": 2,
    "discriminate.batch_size": 16,
    "discriminate.warmup_epochs": 0.5,
    "discriminate.n_sets": 2,
    "frozen_heads.epochs": 2,
    "frozen_heads.batch_size": 16,
    "frozen_heads.neighbours": 3,
    "frozen_heads.n_heads": 2,
    "self_label.epochs": 1,
    "self_label.threshold": 0.2,
    "self_label.learning_rate": 1e-3,
}


def test_features_are_learnt_once_and_heads_start_from_several_seeds(
    estimator, images, monkeypatch
):
    """The first start is the training that n_init=1 has; the others have its features."""
    trained = []
    train_epoch = Trainer._train_epoch

    def counted(trainer, interruption):
        trained.append(trainer.plan.names[trainer.plan.at(trainer.epoch + 1).index])
        return train_epoch(trainer, interruption)

    monkeypatch.setattr(Trainer, "_train_epoch", counted)
    several = restarts.train_all(
        *prepared(estimator(settings=SMALL_RECIPE), images), n_init=3, n_jobs=None, verbose=0
    )
    assert trained.count("discriminate") == 2
    assert trained.count("frozen_heads") == 2 * 3
    (one,) = restarts.train_all(
        *prepared(estimator(settings=SMALL_RECIPE), images), n_init=1, n_jobs=None, verbose=0
    )
    assert np.array_equal(several[0].probabilities, one.probabilities)
    assert several[0].history[0]["loss"] == one.history[0]["loss"] == several[2].history[0]["loss"]
    assert len({fitted.config.train.seed for fitted in several}) == 3
    assert not np.array_equal(several[0].probabilities, several[1].probabilities)


def test_heads_that_train_with_the_network_have_features_of_their_own(estimator, images):
    found = restarts.train_all(
        *prepared(estimator(epochs=3), images), n_init=2, n_jobs=None, verbose=0
    )
    assert found[0].history[0]["loss"] != found[1].history[0]["loss"]


def prepared(model, images):
    ready, _ = prepare(model, images, None, 0, None, lambda *_: None)
    return ready.config, ready.images
