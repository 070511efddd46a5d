"""What a value must be, alone and beside the others."""

import pytest

from dcdc.config import RunConfig, from_mapping, to_mapping, with_settings, with_values
from dcdc.errors import InputError

EVERY_PHASE = with_values(RunConfig(), {"phases": ("contrast", "byol", "heads", "self_label")})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("n_clusters=1", "n_clusters = 1 must be at least 2"),
        ("n_clusters=0", "n_clusters = 0 must be at least 2"),
        ("heads.epochs=0", "heads.epochs = 0 must be at least 1"),
        ("heads.batch_size=1", "heads.batch_size = 1 must be at least 2"),
        ("heads.n_repeats=0", "must be at least 1"),
        ("heads.learning_rate=0", "must be above 0"),
        ("heads.learning_rate=nan", "must be above 0"),
        ("train.seed=-1", "train.seed = -1 must be 0 to"),
        ("heads.temperature=0", "heads.temperature = 0.0 must be above 0"),
        ("heads.class_weight=-1", "must be at least 0"),
        ("network.sub_heads=0", "network.sub_heads = 0 must be at least 1"),
        ("network.over_clusters=1", "0 (no over-clustering head) or at least 2"),
        ("heads.over_clustering_first=200", "a share of the epochs, or fewer than all 200"),
        ("data.size=4", "data.size = 4 must be 8 to 512 pixels"),
        ("train.checkpoint_every=0", "must be at least 1"),
        ("train.threads=-1", "must be at least 0"),
        ("heads.neighbours=-1", "heads.neighbours = -1 must be at least 0"),
        ("contrast.epochs=-1", "contrast.epochs = -1 must be at least 0"),
        ("contrast.batch_size=1", "contrast.batch_size = 1 must be at least 2"),
        ("contrast.learning_rate=0", "contrast.learning_rate = 0.0 must be above 0"),
        ("contrast.learning_rate=nan", "contrast.learning_rate = nan must be above 0"),
        ("contrast.temperature=0", "contrast.temperature = 0.0 must be above 0"),
        ("contrast.projection=1", "contrast.projection = 1 must be at least 2"),
        ("byol.epochs=-1", "byol.epochs = -1 must be at least 0"),
        ("byol.batch_size=1", "byol.batch_size = 1 must be at least 2"),
        ("byol.momentum=1", "byol.momentum = 1.0 must be from 0 to below 1"),
        ("byol.momentum=-0.1", "byol.momentum = -0.1 must be from 0 to below 1"),
        ("byol.projection=1", "byol.projection = 1 must be at least 2"),
        ("self_label.epochs=-1", "self_label.epochs = -1 must be at least 0"),
        ("self_label.batch_size=0", "self_label.batch_size = 0 must be at least 2"),
        ("self_label.batch_size=1", "self_label.batch_size = 1 must be at least 2"),
        ("self_label.learning_rate=0", "self_label.learning_rate = 0.0 must be above 0"),
        ("self_label.threshold=1", "self_label.threshold = 1.0 must be from 0 to below 1"),
        ("self_label.threshold=-0.1", "self_label.threshold = -0.1 must be from 0 to below 1"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_it_must_be(setting, message):
    with pytest.raises(InputError) as caught:
        with_settings(EVERY_PHASE, [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_view_at_all_is_refused():
    with pytest.raises(InputError, match="at least one view"):
        with_settings(RunConfig(), ["heads.sample_weight=0", "heads.class_weight=0"])


def test_self_labels_are_of_one_head():
    with pytest.raises(InputError, match=r"1 where self_label.epochs is above 0"):
        with_settings(EVERY_PHASE, ["network.sub_heads=2", "self_label.epochs=1"])


def test_the_first_phase_that_trains_says_how_many_images_a_step_has():
    assert with_settings(EVERY_PHASE, ["heads.batch_size=none", "contrast.epochs=1"])
    with pytest.raises(InputError, match=r"^heads.batch_size = None must be a number of images$"):
        with_settings(EVERY_PHASE, ["heads.batch_size=none"])


def test_features_first_need_the_head_that_finds_them():
    with pytest.raises(InputError, match=r"0 where network.over_clusters is 0"):
        with_settings(RunConfig(), ["network.over_clusters=0", "heads.over_clustering_first=2"])


@pytest.mark.parametrize("sizes", ["free", "equal", [0.5, 0.3, 0.2], (0.334, 0.333, 0.333)])
def test_sizes_of_clusters(sizes):
    config = with_values(RunConfig(n_clusters=3), {"sizes": sizes})
    assert config.sizes == (sizes if isinstance(sizes, str) else tuple(sizes))
    assert from_mapping(to_mapping(config)) == config


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ("fre", "is not one of equal, free"),
        (0.5, "must be a list of numbers"),
        ([0.5, 0.5], "a share for each of the 3 clusters"),
        ([0.5, 0.3, 0.1], "shares that sum to 1"),
        ([1.2, -0.1, -0.1], "must be each above 0, up to 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes, wanted):
    with pytest.raises(InputError, match=wanted):
        with_values(RunConfig(n_clusters=3), {"sizes": sizes})


def test_a_loss_that_knows_no_sizes_takes_equal_ones_alone():
    with pytest.raises(InputError, match="must be equal with the loss iic"):
        with_values(RunConfig(), {"heads.loss": "iic", "sizes": "free"})
