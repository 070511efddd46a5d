"""DAC, DDC and DCCM as configs of DCDC's engine."""

import json

import numpy as np
import pytest

from dcdc.data import load_digits
from dcdc.errors import InputError
from dcdc.methods import Context, by_relations, find_method
from dcdc.metrics import cluster_accuracy

EVERY = pytest.mark.parametrize("method", ["dac", "ddc", "dccm"])


def relate_of(config):
    (phase,) = config.phases
    return phase


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(by_relations, "has_gpu", lambda _: True)


@EVERY
@pytest.mark.usefixtures("on_gpu")
def test_photos_on_a_gpu_are_trained_as_the_papers_have_it(method, config_of, colour):
    config = config_of(method, colour(32, n_images=8_000))
    phase = relate_of(config)
    assert (config.network.backbone, config.network.over_clusters) == ("convnet", 0)
    assert (config.augment.rotation, config.augment.shift) == (20, 0.18)
    assert (config.augment.scale, config.augment.flip) == ((0.85, 1.15), 0.5)
    assert (phase.k_means_at, phase.batch_size, phase.n_passes) == ((), 128, 1)
    assert (phase.schedule, phase.logit_norm) == ("constant", True)
    published = {
        "dac": {"upper": 0.99, "lower": 0.8, "earlier_weight": 1, "epochs": 500},
        "ddc": {"threshold": "even", "epochs": 500},
        "dccm": {"upper": 0.95, "lower": 0.95, "label_weight": 5, "label_threshold": 0.9}
        | {"information_weight": 0.05, "learning_rate": 1e-4, "epochs": 2_000},
    }
    assert {name: getattr(phase, name) for name in published[method]} == published[method]
    assert config.train.evaluate_every == phase.epochs // 20


@EVERY
@pytest.mark.usefixtures("on_gpu")
def test_tiny_images_are_small_ones_wherever_they_are(method, config_of):
    config = config_of(method, load_digits())
    phase = relate_of(config)
    assert (config.network.backbone, config.train.threads) == ("small", 1)
    assert (phase.batch_size, phase.n_passes, phase.epochs) == (32, 1, 48)
    assert phase.k_means_at[-3:] == (0.25, 0.5, 0.75)
    assert not phase.logit_norm
    assert config.augment.flip == 0


@EVERY
def test_few_images_are_passed_over_several_times_by_the_same_answers(method, config_of, colour):
    phase = relate_of(config_of(method, colour(8, n_images=70)))
    assert (phase.batch_size, phase.n_passes) == (10, 8)
    assert relate_of(config_of(method, colour(8, n_images=3), n_clusters=2)).n_passes == 10


@EVERY
def test_what_is_asked_for_comes_last(method, config_of):
    asked = {"epochs": 3, "batch_size": 50, "learning_rate": 0.5}
    phase = relate_of(config_of(method, load_digits(), **asked))
    assert {name: getattr(phase, name) for name in asked} == asked
    changes = ("relate.n_passes=4", "relate.label_threshold=0.7")
    phase = relate_of(config_of(method, load_digits(), changes=changes))
    assert (phase.n_passes, phase.label_threshold) == (4, 0.7)


@EVERY
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"batch_size": 1}, "must be at least 2"),
        ({"batch_size": 0}, "must be at least 2"),
        ({"batch_size": 100}, "a batch of 100 is larger than the set of 48 images"),
        ({"learning_rate": 0.0}, "must be above 0"),
        ({"changes": ("relate.upper=2",)}, "must be 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(method, tiny_set, tmp_path, setting, told):
    folder = tmp_path / "run"
    with pytest.raises(InputError, match=told) as refused:
        find_method(method).cluster(tiny_set, 3, 0, Context(folder=folder), **setting)
    assert "\n" not in str(refused.value)
    assert not folder.exists()


@EVERY
def test_a_finished_run_is_not_trained_again_nor_taken_for_another(method, tiny_set, tmp_path):
    cluster, context = find_method(method).cluster, Context(folder=tmp_path / "run")
    first = cluster(tiny_set, 3, 0, context, epochs=1)
    history = (tmp_path / "run" / "history.jsonl").read_text()
    again = cluster(tiny_set, 3, 0, context, epochs=1)
    assert np.array_equal(first.probabilities, again.probabilities)
    assert (tmp_path / "run" / "history.jsonl").read_text() == history
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert cluster_accuracy(tiny_set.targets, first.assignments) == metrics["scores"]["acc"]
    with pytest.raises(InputError, match="cannot resume"):
        cluster(tiny_set, 3, 1, context, epochs=1)
