"""Values become what their key wants, or are refused in one line."""

import pytest

from dcdc.config import AugmentConfig, RunConfig, with_settings, with_values
from dcdc.errors import InputError
from dcdc.phases.heads import heads_of


def test_settings_are_read_as_their_key_wants_them():
    config = with_settings(
        RunConfig(),
        [
            "n_clusters=7",
            "heads.temperature=1",
            "network.sobel=true",
            "network.backbone=small",
            "augment.crop_scale=0.3, 0.9",
            "augment.scale=[0.5, 2]",
            "network.mean=none",
            "data.source=my photos",
            "heads.learning_rate = 3e-4",
        ],
    )
    assert config.n_clusters == 7
    heads = heads_of(config)
    assert heads.temperature == 1.0
    assert isinstance(heads.temperature, float)
    assert config.network.sobel is True
    assert config.network.backbone == "small"
    assert config.augment == AugmentConfig(crop_scale=(0.3, 0.9), scale=(0.5, 2.0))
    assert config.data.source == "my photos"
    assert heads.learning_rate == 3e-4


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("heads.epochs=many", "heads.epochs = 'many' must be a whole number"),
        ("heads.epochs=2.5", "heads.epochs = 2.5 must be a whole number"),
        ("heads.epochs=true", "heads.epochs = True must be a whole number"),
        ("heads.learning_rate=fast", "must be a number"),
        ("network.sobel=1", "network.sobel = 1 must be true or false"),
        ("train.device=gpu", "train.device = 'gpu' is not one of auto, cpu, cuda, mps"),
        ("augment.crop_scale=0.5", "must be a list of numbers"),
        ("augment.crop_scale=1,2,3", "must hold 2 numbers"),
        ("heads.loss=icc", "did you mean 'iic'?"),
        ("heads.order=jiont", "did you mean 'joint'?"),
        ("phases=3", "phases = 3 must be a list of texts"),
        ("contrast.schedule=linear", "contrast.schedule = 'linear' is not one of constant, cosine"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_the_way_out(setting, message):
    with pytest.raises(InputError) as caught:
        with_settings(with_values(RunConfig(), {"phases": ("contrast", "heads")}), [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
