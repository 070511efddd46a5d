"""The names of settings, and the hint for one that does not exist."""

import pytest

from dcdc.config import RunConfig, with_settings
from dcdc.errors import InputError


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("heads.epoch=3", "unknown config key 'heads.epoch'; did you mean 'heads.epochs'?"),
        ("temperature=1", "unknown config key 'temperature'; did you mean 'heads.temperature'?"),
        ("zzz.qqq=1", "unknown config key 'zzz.qqq'"),
        ("self_label.treshold=1", "did you mean 'self_label.threshold'?"),
        ("projection=9", "unknown config key 'projection'; did you mean 'contrast.projection'?"),
    ],
)
def test_a_wrong_key_is_named_with_the_one_that_was_meant(setting, message):
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
