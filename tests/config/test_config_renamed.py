"""Settings of 0.1.0: its files are read by today's names, and whoever types one is told."""

import json
from pathlib import Path

import pytest

from dcdc.config import RunConfig, flat, from_mapping, with_settings
from dcdc.config.keys import type_of_key
from dcdc.config.renamed import GONE, NEW_NAMES, upgraded, upgraded_weights
from dcdc.engine.model_files import read_config
from dcdc.errors import InputError
from dcdc.phases.byol import Byol
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads, heads_of
from dcdc.phases.self_label import SelfLabel
from dcdc.run import read_config as read_run_config
from dcdc.run_folder import RunFolder

RUNS = Path(__file__).parents[2] / "docs" / "runs"
KEPT = [
    path
    for path in sorted(RUNS.rglob("config.json"))
    if json.loads(path.read_text())["format"] == 1
]


def as_0_1_0(**sections):
    """What 0.1.0 wrote, as far as these tests look."""
    usual = {
        "n_clusters": 10,
        "network": {"trunk": "small", "over_clusters": 70},
        "loss": {"kind": "dcdc", "temperature": 0.5, "spare_siblings": False},
        "instance": {
            "kind": "contrast",
            "epochs": 0,
            "batch_size": 512,
            "copies": 2,
            "temperature": 0.2,
            "momentum": 0.99,
            "projection": 128,
            "learning_rate": 1e-3,
            "schedule": "cosine",
            "warmup_epochs": 0.0,
        },
        "self_label": {"epochs": 0, "batch_size": None, "threshold": 0.99},
        "train": {"epochs": 200, "heads": "alternate", "head_start": "random", "seed": 3},
    }
    for section, values in sections.items():
        usual[section] = usual.get(section, {}) | values
    return usual


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_every_kept_run_is_read_with_all_that_it_says(path):
    written = json.loads(path.read_text())
    found = flat(from_mapping(read_config(path)))
    predicts = written["instance"].get("kind") == "prediction"
    for section, values in written.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            old = f"{section}.{name}"
            key = NEW_NAMES.get(old, old)
            if old in GONE or old == "instance.kind":
                continue
            if section in ("instance", "self_label") and not written[section]["epochs"]:
                assert key not in found
            elif old != ("instance.temperature" if predicts else "instance.momentum"):
                assert found[key] == (tuple(value) if isinstance(value, list) else value), key
    assert found["n_clusters"] == written["n_clusters"]


def test_runs_are_kept():
    assert len(KEPT) > 10


def test_phases_of_no_epochs_are_not_listed():
    config = from_mapping(upgraded(as_0_1_0()))
    assert config.phases == (Heads(),)
    assert (config.n_clusters, config.network.backbone, config.train.seed) == (10, "small", 3)


def test_the_three_phases_in_their_order_with_their_settings():
    written = as_0_1_0(
        instance={"epochs": 2, "temperature": 0.3, "projection": 9},
        train={"epochs": 4, "batch_size": 8, "heads": "joint", "head_start": "k-means"},
        loss={"kind": "iic", "temperature": 0.7, "balance_weight": 2.0},
        self_label={"epochs": 3, "threshold": 0.8},
    )
    assert from_mapping(upgraded(written)).phases == (
        Contrast(epochs=2, temperature=0.3, projection=9),
        Heads(
            epochs=4,
            batch_size=8,
            order="joint",
            initialisation="k-means",
            loss="iic",
            temperature=0.7,
            balance_weight=2.0,
        ),
        SelfLabel(epochs=3, threshold=0.8),
    )


def test_features_by_prediction_are_those_of_byol():
    written = as_0_1_0(instance={"kind": "prediction", "epochs": 2, "momentum": 0.9})
    assert from_mapping(upgraded(written)).phases == (Byol(epochs=2, momentum=0.9), Heads())


def test_a_file_that_leaves_sections_out_has_the_usual_ones():
    """Files of before 0.1.0 have no format either, and fewer sections."""
    config = from_mapping(upgraded({"n_clusters": 4, "network": {"trunk": "small"}}))
    assert config == from_mapping({"n_clusters": 4, "network": {"backbone": "small"}})
    few = from_mapping(upgraded({"train": {"batch_size": 20}}))
    assert heads_of(few) == Heads(batch_size=20)


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("instance", "copies", 4),
        ("instance", "warmup_epochs", 5.0),
        ("train", "warmup_epochs", 1.5),
        ("loss", "spare_siblings", True),
        ("train", "passes", "two"),
        ("augment", "crop_ratio", [1.0, 1.0]),
    ],
)
def test_what_cannot_be_any_more_is_refused_in_one_line(tmp_path, section, name, value):
    folder = RunFolder(tmp_path)
    folder.config_file.write_text(json.dumps(as_0_1_0(**{section: {name: value}})))
    with pytest.raises(InputError) as caught:
        read_run_config(folder)
    said = str(caught.value)
    gone = "a setting of 0.1.0 that is no more; read it by dcdc 0.1"
    assert said == f"{folder.config_file}: {section}.{name} = {value!r}: {gone}"


def test_a_folder_of_today_may_still_name_what_went_at_its_default(tmp_path):
    """As those did that were written before 0.2.0 was released."""
    written = {"format": 2, "n_clusters": 4, "train": {"seed": 5, "passes": "auto"}}
    written["augment"] = {"flip": 0.5, "crop_ratio": [3 / 4, 4 / 3]}
    (tmp_path / "config.json").write_text(json.dumps(written))
    config = from_mapping(read_config(tmp_path / "config.json"))
    assert (config.train.seed, config.augment.flip) == (5, 0.5)


@pytest.mark.parametrize("old", NEW_NAMES)
def test_an_old_name_is_answered_with_the_new_one(old):
    assert type_of_key(NEW_NAMES[old])  # there is one
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [f"{old}=1"])
    assert str(caught.value) == f"{old!r} is called {NEW_NAMES[old]!r} now"


@pytest.mark.parametrize("old", GONE)
def test_a_setting_that_is_gone_is_named_so(old):
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [f"{old}=1"])
    assert str(caught.value) == f"{old!r} is a setting of 0.1.0 that is no more"


def test_weights_have_the_names_of_today():
    of_contrast = ["normalise.mean", "trunk.0.weight", "heads.cluster_head.weight", "answering"]
    named = upgraded_weights(dict.fromkeys([*of_contrast, "projection.2.bias"], 0))
    assert list(named) == [
        *("normalise.mean", "backbone.0.weight", "heads.cluster_head.weight", "answering"),
        "parts.contrast.2.bias",
    ]
    of_byol = ["projection.0.bias", "predictor.0.bias", "slow_copy.network.0.1.weight"]
    assert list(upgraded_weights(dict.fromkeys(of_byol, 0))) == [
        "parts.byol.projection.0.bias",
        "parts.byol.predictor.0.bias",
        "parts.byol.target.network.0.1.weight",
    ]
    assert upgraded_weights(dict.fromkeys(named, 0)) == dict.fromkeys(named, 0)
