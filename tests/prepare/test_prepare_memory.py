"""What cannot fit is refused before it is tried, with what to lower; what may fit is not."""

import time
from dataclasses import replace

import pytest

from dcdc.config import with_values
from dcdc.errors import InputError
from dcdc.prepare import memory
from dcdc.prepare.presets import PRESETS
from dcdc.prepare.resolve import resolve

GB = 10**9


@pytest.fixture
def free(monkeypatch):
    def set_to(n_bytes):
        monkeypatch.setattr(memory, "free_memory", lambda _: n_bytes)

    return set_to


@pytest.mark.parametrize(
    ("values", "lower"),
    [
        ({"network.over_clusters": 100_000}, "network.over_clusters"),
        ({"network.sub_heads": 1_000, "network.over_clusters": 20_000}, "network.sub_heads"),
        ({"heads.n_repeats": 1_000, "heads.batch_size": 48}, "heads.n_repeats"),
    ],
)
def test_what_cannot_fit_says_what_to_lower(values, lower, tiny_config, tiny_set, free):
    free(4 * GB)
    began = time.monotonic()
    with pytest.raises(InputError, match=r"needs at least .* GB") as caught:
        resolve(with_values(tiny_config, values), tiny_set)
    assert f"lower {lower}" in str(caught.value) or f"or {lower}" in str(caught.value)
    assert time.monotonic() - began < 2  # nothing was tried


def test_every_recipe_is_let_through(tiny_config, tiny_set, free):
    free(1 * GB)
    resolve(tiny_config, tiny_set)
    for preset in PRESETS.values():
        asked = replace(preset, data=tiny_config.data)
        needs = memory._needs(asked, tiny_set)
        assert sum(need.n_bytes for need in needs) < GB


def test_where_nobody_says_how_much_is_free_all_is_tried(tiny_config, tiny_set, free):
    free(None)
    resolve(with_values(tiny_config, {"network.over_clusters": 100_000}), tiny_set)
