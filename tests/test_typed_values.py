"""Values become what their key wants, or are refused in one line."""

import pytest

from dcdc.config import AugmentConfig, RunConfig, with_settings
from dcdc.errors import InputError


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


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epochs=many", "train.epochs = 'many' must be a whole number"),
        ("train.epochs=2.5", "train.epochs = 2.5 must be a whole number"),
        ("train.epochs=true", "train.epochs = True must be a whole number"),
        ("train.learning_rate=fast", "must be a number"),
        ("network.sobel=1", "network.sobel = 1 must be true or false"),
        ("network.trunk=resnet43", "did you mean 'resnet34'?"),
        ("train.device=gpu", "train.device = 'gpu' is not one of auto, cpu, cuda, mps"),
        ("augment.crop_scale=0.5", "must be a list of numbers"),
        ("augment.crop_scale=1,2,3", "must hold 2 numbers"),
        ("loss.kind=icc", "did you mean 'iic'?"),
        ("instance.schedule=linear", "instance.schedule = 'linear' is not one of constant, cosine"),
        ("network.trunk=resnet18-unpoled", "did you mean 'resnet18-unpooled'?"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_the_way_out(setting, message):
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
