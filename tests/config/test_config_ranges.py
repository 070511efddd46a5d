import math

import pytest

from dcdc.config import RunConfig, with_settings
from dcdc.config.keys import range_of_key
from dcdc.config.ranges import Range
from dcdc.errors import InputError


@pytest.mark.parametrize(
    ("allowed", "text", "good", "bad"),
    [
        (Range(2), "at least 2", (2, 10**30), (1, math.inf, math.nan)),
        (Range(1, most=1_000), "at least 1, up to 1,000", (1, 1000), (0, 1001)),
        (Range(0, 1, above=True), "above 0, up to 1", (1e-9, 1), (0, 1.1, math.nan)),
        (Range(0, 1, below=True), "from 0 to below 1", (0, 0.99), (1, -1)),
        (Range(8, 512, unit="pixels"), "8 to 512 pixels", (8, 512), (7, 513)),
        (Range(2, 9, zero="none"), "0 (none) or 2 to 9", (0, 2, 9), (1, -1, 10)),
        (Range(), "finite", (-1e300, 5), (math.inf, math.nan)),
    ],
)
def test_a_range_in_words_and_in_numbers(allowed, text, good, bad):
    assert str(allowed) == text
    assert all(map(allowed.holds, good))
    assert not any(map(allowed.holds, bad))


@pytest.mark.parametrize(
    "setting",
    [
        *("network.std=[0]", "network.std=[-1.0]", "network.std=[nan]", "network.mean=[inf]"),
        *("train.threads=100000", "network.over_clusters=10000000000", "heads.n_repeats=100000"),
        *("network.sub_heads=1000000000", "heads.temperature=inf"),
        *("augment.noise=nan", "augment.resize_to=100000", "heads.learning_rate=inf"),
    ],
)
def test_what_lies_outside_is_refused_with_what_it_must_be(setting):
    key = setting.partition("=")[0]
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig(), [setting])
    assert f"must be {range_of_key(key)}" in str(caught.value).replace("each ", "")
    assert caught.value.parameter == key
