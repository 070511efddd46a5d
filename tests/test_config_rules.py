"""What a value must be, alone and beside the others."""

import pytest

from dcdc.config import RunConfig, with_settings
from dcdc.errors import InputError


@pytest.mark.parametrize(
    ("setting", "message"),
    [
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
        ("instance.copies=1", "instance.copies = 1 must be at least 2"),
        ("instance.temperature=0", "instance.temperature = 0.0 must be above 0"),
        ("instance.projection=1", "instance.projection = 1 must be at least 2"),
        ("instance.warmup_epochs=-1", "instance.warmup_epochs = -1.0 must be 0 or above"),
        ("self_label.epochs=-1", "self_label.epochs = -1 must be 0 or above"),
        ("self_label.batch_size=0", "self_label.batch_size = 0 must be at least 2"),
        ("self_label.batch_size=1", "self_label.batch_size = 1 must be at least 2"),
        ("self_label.learning_rate=0", "self_label.learning_rate = 0.0 must be above 0"),
        ("self_label.threshold=1", "self_label.threshold = 1.0 must be from 0 to below 1"),
        ("self_label.threshold=-0.1", "self_label.threshold = -0.1 must be from 0 to below 1"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_it_must_be(setting, message):
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_view_at_all_is_refused():
    with pytest.raises(InputError, match="at least one view"):
        with_settings(RunConfig(), ["loss.sample_weight=0", "loss.class_weight=0"])


def test_self_labels_are_of_one_head():
    with pytest.raises(InputError, match=r"1 where self_label.epochs is above 0"):
        with_settings(RunConfig(), ["network.sub_heads=2", "self_label.epochs=1"])


def test_prediction_is_of_two_copies():
    with pytest.raises(InputError, match=r"instance.copies = 3 must be 2 where instance.kind is"):
        with_settings(RunConfig(), ["instance.copies=3", "instance.kind=prediction"])


def test_features_first_need_the_head_that_finds_them():
    with pytest.raises(InputError, match=r"0 where network.over_clusters is 0"):
        with_settings(RunConfig(), ["network.over_clusters=0", "train.over_clustering_first=2"])
