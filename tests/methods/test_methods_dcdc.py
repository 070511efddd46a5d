import json
import signal
from dataclasses import replace

import numpy as np
import pytest

from dcdc.data import load_digits, load_images
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError, Interrupted
from dcdc.methods import Context, find_method
from dcdc.methods.dcdc import choose_recipe
from dcdc.presets import PRESETS
from dcdc.run import load

cluster = find_method("dcdc").cluster
SMALL = ("network.over_clusters=6", "train.n_repeats=1", "train.checkpoint_every=1")


def test_a_set_with_a_recipe_of_its_own_gets_it_and_others_what_fit_would_choose(tiny_set):
    digits = load_images("digits")
    assert choose_recipe(digits, 10, "cpu", None) == PRESETS["digits"]
    assert choose_recipe(load_digits(), 10, "cpu", None) != PRESETS["digits"]
    assert choose_recipe(tiny_set, 3, "cpu", None).n_clusters == 3
    assert choose_recipe(tiny_set, 3, "cpu", "cifar10") == PRESETS["cifar10"]
    with pytest.raises(InputError, match="did you mean 'cifar10'"):
        choose_recipe(tiny_set, 3, "cpu", "cifr10")


def test_a_recipe_for_a_gpu_is_not_taken_on_a_cpu(tiny_set):
    named = replace(tiny_set, known_as="cifar10")
    assert choose_recipe(named, 3, "cpu", None).network.trunk == "small"


def test_a_stopped_run_goes_on_in_its_folder_to_the_same_answer(tiny_set, tmp_path):
    class StopsOnce(SilentObserver):
        def on_epoch(self, record):
            if record["epoch"] == 1:
                signal.raise_signal(signal.SIGINT)

    folder = tmp_path / "run"
    how = {"epochs": 3, "changes": SMALL}
    with pytest.raises(Interrupted):
        cluster(tiny_set, 3, 0, Context(folder=folder, observer=StopsOnce()), **how)
    assert not (folder / "metrics.json").exists()
    went_on = cluster(tiny_set, 3, 0, Context(folder=folder), **how)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    at_once = cluster(tiny_set, 3, 0, **how)
    assert np.array_equal(went_on.probabilities, at_once.probabilities)
    assert np.array_equal(load(folder).predict(tiny_set.images), at_once.assignments)


def test_what_cannot_be_borne_leaves_no_folder(tiny_set, tmp_path):
    with pytest.raises(InputError, match="a batch of 49 is larger"):
        cluster(tiny_set, 3, 0, Context(folder=tmp_path / "run"), changes=("train.batch_size=49",))
    assert list(tmp_path.iterdir()) == []


def test_settings_reach_the_run(tiny_set, tmp_path):
    cluster(tiny_set, 3, 5, Context(folder=tmp_path / "run"), epochs=1, changes=SMALL)
    stored = json.loads((tmp_path / "run/config.json").read_text())
    assert stored["train"]["seed"] == 5
    assert stored["train"]["epochs"] == 1
    assert stored["network"]["over_clusters"] == 6
