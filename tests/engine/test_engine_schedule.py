import math

import pytest

from dcdc.engine.schedule import learning_rate_factor


def test_constant_stays_and_cosine_falls_from_one_to_nothing():
    at = lambda schedule, epoch: learning_rate_factor(schedule, epoch, 10)  # noqa: E731
    assert [at("constant", epoch) for epoch in (0, 3.5, 10)] == [1, 1, 1]
    assert [at("cosine", epoch) for epoch in (0, 5, 10)] == pytest.approx([1, 0.5, 0])
    assert at("cosine", 2.5) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


def test_an_unknown_schedule_is_named():
    with pytest.raises(ValueError, match="'linear'"):
        learning_rate_factor("linear", 0, 1)
