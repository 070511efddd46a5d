"""What a run is: names, types and bounds, wherever the values come from."""

import json
from dataclasses import replace

import pytest

from dcdc.config import (
    AugmentConfig,
    RunConfig,
    TrainConfig,
    differences,
    flat,
    from_mapping,
    from_toml,
    to_mapping,
    with_settings,
    with_values,
)
from dcdc.errors import InputError
from dcdc.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_json(name):
    config = PRESETS[name]
    assert from_mapping(json.loads(json.dumps(to_mapping(config)))) == config


def test_settings_are_read_as_their_key_wants_them():
    config = with_settings(
        RunConfig(),
        [
            "n_clusters=7",
            "loss.temperature=1",
            "network.sobel=true",
            "network.trunk=small",
            "augment.crop_scale=0.3, 0.9",
            "augment.scale=[0.5, 2]",
            "network.mean=none",
            "data.source=my photos",
            "train.learning_rate = 3e-4",
        ],
    )
    assert config.n_clusters == 7
    assert config.loss.temperature == 1.0
    assert isinstance(config.loss.temperature, float)
    assert config.network.sobel is True
    assert config.network.trunk == "small"
    assert config.augment == AugmentConfig(crop_scale=(0.3, 0.9), scale=(0.5, 2.0))
    assert config.data.source == "my photos"
    assert config.train.learning_rate == 3e-4


def test_toml_lays_over_what_was_there(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('n_clusters = 5\n[train]\nepochs = 3\nheads = "joint"\n')
    config = from_toml(path, replace(RunConfig(), train=TrainConfig(seed=9)))
    assert (config.n_clusters, config.train.epochs, config.train.heads) == (5, 3, "joint")
    assert config.train.seed == 9


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epoch=3", "unknown config key 'train.epoch'; did you mean 'train.epochs'?"),
        ("temperature=1", "unknown config key 'temperature'; did you mean 'loss.temperature'?"),
        ("zzz.qqq=1", "unknown config key 'zzz.qqq'"),
        ("train.epochs", "has no value: write section.key=value"),
        ("train.epochs=many", "train.epochs = 'many' must be a whole number"),
        ("train.epochs=2.5", "train.epochs = 2.5 must be a whole number"),
        ("train.epochs=true", "train.epochs = True must be a whole number"),
        ("train.learning_rate=fast", "must be a number"),
        ("network.sobel=1", "network.sobel = 1 must be true or false"),
        ("network.trunk=resnet43", "did you mean 'resnet34'?"),
        ("train.device=gpu", "train.device = 'gpu' is not one of auto, cpu, cuda, mps"),
        ("augment.crop_scale=0.5", "must be a list of numbers"),
        ("augment.crop_scale=1,2,3", "must hold 2 numbers"),
        ("n_clusters=1", "n_clusters = 1 must be at least 2"),
        ("n_clusters=0", "n_clusters = 0 must be at least 2"),
        ("train.epochs=0", "train.epochs = 0 must be at least 1"),
        ("train.batch_size=1", "train.batch_size = 1 must be at least 2"),
        ("train.n_repeats=0", "must be at least 1"),
        ("train.learning_rate=0", "must be above 0"),
        ("train.learning_rate=nan", "must be above 0"),
        ("train.seed=-1", "train.seed = -1 must be 0 to"),
        ("loss.temperature=0", "loss.temperature = 0.0 must be above 0"),
        ("loss.class_weight=-1", "must be 0 or above"),
        ("network.sub_heads=0", "network.sub_heads = 0 must be at least 1"),
        ("loss.kind=icc", "did you mean 'iic'?"),
        ("network.over_clusters=1", "0 (no over-clustering head) or at least 2"),
        ("train.over_clustering_first=200", "a share of the epochs, or fewer than all 200"),
        ("data.size=4", "data.size = 4 must be 8 to 512 pixels"),
        ("train.checkpoint_every=0", "must be at least 1"),
        ("train.threads=-1", "must be 0 or above"),
        ("train.neighbours=-1", "train.neighbours = -1 must be 0 or above"),
        ("instance.epochs=-1", "instance.epochs = -1 must be 0 or above"),
        ("instance.batch_size=1", "instance.batch_size = 1 must be at least 2"),
        ("instance.learning_rate=0", "instance.learning_rate = 0.0 must be above 0"),
        ("instance.learning_rate=nan", "instance.learning_rate = nan must be above 0"),
        ("instance.temperature=0", "instance.temperature = 0.0 must be above 0"),
        ("instance.projection=1", "instance.projection = 1 must be at least 2"),
        ("instance.warmup_epochs=-1", "instance.warmup_epochs = -1.0 must be 0 or above"),
        ("instance.schedule=linear", "instance.schedule = 'linear' is not one of constant, cosine"),
        ("self_label.epochs=-1", "self_label.epochs = -1 must be 0 or above"),
        ("self_label.batch_size=1", "self_label.batch_size = 1 must be at least 2"),
        ("self_label.learning_rate=0", "self_label.learning_rate = 0.0 must be above 0"),
        ("self_label.threshold=1", "self_label.threshold = 1.0 must be from 0 to below 1"),
        ("self_label.threshold=-0.1", "self_label.threshold = -0.1 must be from 0 to below 1"),
        ("self_label.treshold=1", "did you mean 'self_label.threshold'?"),
        ("network.trunk=resnet18-unpoled", "did you mean 'resnet18-unpooled'?"),
    ],
)
def test_a_wrong_setting_is_named_with_the_way_out(setting, message):
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_phases_are_off_unless_asked_for():
    config = RunConfig()
    assert (config.instance.epochs, config.train.neighbours, config.self_label.epochs) == (0, 0, 0)
    asked_for = with_settings(
        config,
        [
            "instance.epochs=3",
            "train.neighbours=20",
            "self_label.threshold=0",
            "self_label.epochs=1",
        ],
    )
    assert from_mapping(json.loads(json.dumps(to_mapping(asked_for)))) == asked_for
    assert differences(asked_for, config).keys() == {
        "instance.epochs",
        "train.neighbours",
        "self_label.threshold",
        "self_label.epochs",
    }


def test_no_view_at_all_is_refused():
    with pytest.raises(InputError, match="at least one view"):
        with_settings(RunConfig(), ["loss.sample_weight=0", "loss.class_weight=0"])


def test_self_labels_are_of_one_head():
    with pytest.raises(InputError, match=r"1 where self_label.epochs is above 0"):
        with_settings(RunConfig(), ["network.sub_heads=2", "self_label.epochs=1"])


def test_features_first_need_the_head_that_finds_them():
    with pytest.raises(InputError, match=r"0 where network.over_clusters is 0"):
        with_settings(RunConfig(), ["network.over_clusters=0", "train.over_clustering_first=2"])


def test_a_file_that_is_not_toml_or_not_there_is_named(tmp_path):
    path = tmp_path / "run.toml"
    with pytest.raises(InputError, match=r"cannot read config .*run.toml: No such file"):
        from_toml(path)
    path.write_text("epochs: 3")
    with pytest.raises(InputError, match=r"run.toml is not valid TOML"):
        from_toml(path)


def test_differences_name_what_changed_but_not_what_is_neutral():
    ours = with_values(
        RunConfig(), {"train.epochs": 3, "train.device": "cpu", "train.keep_checkpoints": 9}
    )
    assert differences(ours, RunConfig()) == {"train.epochs": (3, 200)}


def test_flat_has_every_value_under_the_name_that_settings_take():
    values = flat(RunConfig())
    assert with_values(RunConfig(), values) == RunConfig()
    assert values["train.epochs"] == 200
