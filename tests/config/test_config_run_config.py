"""What a run is, wherever its values come from."""

import json
from dataclasses import replace

import pytest

from dcdc.config import (
    RunConfig,
    TrainConfig,
    differences,
    flat,
    from_mapping,
    read_toml,
    to_mapping,
    with_settings,
    with_values,
)
from dcdc.errors import InputError
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_json(name):
    config = PRESETS[name]
    assert from_mapping(json.loads(json.dumps(to_mapping(config)))) == config


def test_toml_lays_over_what_was_there(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('n_clusters = 5\n[heads]\nepochs = 3\norder = "joint"\n')
    config = from_mapping(read_toml(path), replace(RunConfig(), train=TrainConfig(seed=9)))
    heads = heads_of(config)
    assert (config.n_clusters, heads.epochs, heads.order) == (5, 3, "joint")
    assert config.train.seed == 9


def test_a_setting_without_a_value_is_named_with_the_way_out():
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), ["heads.epochs"])
    assert "has no value: write section.key=value" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_phases_are_off_unless_asked_for():
    config = RunConfig()
    assert config.phase_names == ("heads",)
    assert heads_of(config).neighbours == 0
    listed = with_settings(config, ["phases=contrast,heads,self_label"])
    assert list(listed.active_phases) == ["heads"]
    asked_for = with_settings(
        listed,
        [
            "contrast.epochs=3",
            "heads.neighbours=20",
            "self_label.threshold=0",
            "self_label.epochs=1",
        ],
    )
    assert from_mapping(json.loads(json.dumps(to_mapping(asked_for)))) == asked_for
    assert list(asked_for.active_phases) == ["contrast", "heads", "self_label"]
    assert differences(asked_for, listed).keys() == {
        "contrast.epochs",
        "heads.neighbours",
        "self_label.threshold",
        "self_label.epochs",
    }


def test_a_file_that_is_not_toml_or_not_there_is_named(tmp_path):
    path = tmp_path / "run.toml"
    with pytest.raises(InputError, match=r"cannot read config .*run.toml: No such file"):
        read_toml(path)
    path.write_text("epochs: 3")
    with pytest.raises(InputError, match=r"run.toml is not valid TOML"):
        read_toml(path)


def test_differences_name_what_changed_but_not_what_is_neutral():
    ours = with_values(
        RunConfig(), {"heads.epochs": 3, "train.device": "cpu", "train.keep_checkpoints": 9}
    )
    assert differences(ours, RunConfig()) == {"heads.epochs": (3, 200)}


def test_flat_has_every_value_under_the_name_that_settings_take():
    values = flat(RunConfig())
    assert with_values(RunConfig(), values) == RunConfig()
    assert values["heads.epochs"] == 200
