import json
import signal
from dataclasses import replace

import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.data import load_digits, load_images
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError, Interrupted
from dcdc.methods import Context, find_method
from dcdc.networks.pretrained.efficientnet_lite0 import is_available
from dcdc.prepare.presets import PRESETS
from dcdc.prepare.resolve import resolve
from dcdc.prepare.suggestions import suggest_for
from dcdc.run import load

cluster = find_method("dcdc").cluster
SMALL = ("network.over_clusters=6", "heads.n_repeats=1", "train.checkpoint_every=1")


def whole(recipe, images, n_clusters):
    """A recipe as a run on these images has it."""
    own = {"n_clusters": n_clusters, "train.seed": 3, "train.device": "cpu"}
    return resolve(with_values(recipe, own), images)


def test_a_set_with_a_recipe_of_its_own_gets_it_and_others_what_fit_would_choose(
    config_of, colour, tiny_set
):
    digits, by_hand, photos = load_images("digits"), load_digits(), colour(32)
    assert config_of("dcdc", digits) == whole(PRESETS["digits"], digits, 10)
    assert config_of("dcdc", by_hand) == whole(suggest_for(by_hand, 10, "cpu"), by_hand, 10)
    assert config_of("dcdc", by_hand) != whole(PRESETS["digits"], by_hand, 10)
    assert config_of("dcdc", tiny_set, 3).n_clusters == 3
    own = config_of("dcdc", photos, recipe="cifar10")
    assert own == whole(PRESETS["cifar10"], photos, 10)
    with pytest.raises(InputError, match="did you mean 'cifar10'"):
        cluster(tiny_set, 3, 0, recipe="cifr10")


@pytest.mark.skipif(not is_available(), reason="needs the weights of EfficientNet-Lite0")
def test_photos_are_learnt_from_scratch_whatever_backbone_is_installed(
    config_of, colour, monkeypatch
):
    monkeypatch.setenv("DCDC_BACKBONE", "efficientnet-lite0")
    network = config_of("dcdc", colour(32)).network
    assert (network.backbone, network.frozen) == ("patches", False)
    with pytest.raises(InputError, match="is pretrained, and such figures are never shown beside"):
        cluster(colour(32), 3, 0, changes=("network.backbone=efficientnet-lite0",))


def test_a_recipe_for_a_gpu_is_not_taken_on_a_cpu(config_of, tiny_set):
    named = replace(tiny_set, known_as="cifar10")
    assert config_of("dcdc", named, 3).network.backbone == "small"


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
        cluster(tiny_set, 3, 0, Context(folder=tmp_path / "run"), changes=("heads.batch_size=49",))
    assert list(tmp_path.iterdir()) == []


def test_settings_reach_the_run(tiny_set, tmp_path):
    cluster(tiny_set, 3, 5, Context(folder=tmp_path / "run"), epochs=1, changes=SMALL)
    stored = json.loads((tmp_path / "run/config.json").read_text())
    assert stored["train"]["seed"] == 5
    (heads,) = stored["phases"]
    assert (heads["kind"], heads["epochs"]) == ("heads", 1)
    assert stored["network"]["over_clusters"] == 6
