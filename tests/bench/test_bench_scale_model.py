"""The cost model's arithmetic, on numbers small enough for a head."""

import math

import pytest

from dcdc.bench.case import build_case
from dcdc.bench.scale import recipe_of
from dcdc.bench.scale_model import (
    H200,
    Links,
    Recipe,
    StepTime,
    affinity_bytes,
    epoch_cost,
    predict,
    traffic,
)

STEP = StepTime((10, 20), (3.0, 5.0), "by hand")
RECIPE = Recipe(
    half_gradients=1000,
    full_gradients=500,
    norm_channels=(4, 8),
    n_repeats=3,
    n_clusters=10,
    n_heads=2,
    image_bytes=3072,
)
FAST = Links(within_host=math.inf, between_hosts=math.inf, latency_us=0, memory=math.inf)


def test_a_step_is_a_line_through_two_measured_ones():
    assert STEP.ms_per_image == pytest.approx(0.2)
    assert STEP.fixed_ms == pytest.approx(1.0)
    assert STEP.of(100) == pytest.approx(21)
    assert H200.of(50) == pytest.approx(2.65)
    assert H200.of(200) == pytest.approx(6.94)


def test_one_gpu_exchanges_nothing_and_keeps_its_step():
    one = predict(STEP, RECIPE, 1, 20)
    assert one.traffic.exchanged_bytes == 0
    assert one.step_ms == pytest.approx(5.0)
    assert one.images_per_second == pytest.approx(4000)


def test_bytes_of_four_gpus():
    found = traffic(RECIPE, batch=40, n_gpus=4)
    assert found.gradient_bytes == pytest.approx(2 * 3 / 4 * (2000 + 2000))
    # two groups: three others' means, squares and count of 12 channels in 2 norms; sums come back
    gathered = 3 * 2 * 4 * (12 + 12 + 2)
    assert found.statistics_bytes == pytest.approx(gathered + 2 * 3 / 4 * 2 * 4 * 24)
    assert found.assignment_bytes == pytest.approx(3 / 4 * 4 * 160 * 10)
    assert found.n_collectives == 2 + 2 + 1 + 2
    assert found.read_bytes == 10 * 3072


def test_links_decide_between_hosts_and_within():
    links = Links(
        gpus_per_host=4, within_host=1e6, between_hosts=1e5, latency_us=1000, memory=math.inf
    )
    within, between = (predict(STEP, RECIPE, n, 40, links) for n in (4, 8))
    moved = within.traffic.exchanged_bytes
    assert within.exchange_ms == pytest.approx(1000 * moved / 1e6 + 7)
    moved = between.traffic.exchanged_bytes
    assert between.exchange_ms == pytest.approx(1000 * moved / 1e5 + 7 * (1 + 0.008))
    assert within.compute_ms == STEP.of(10)


def test_with_ideal_links_only_the_fixed_part_of_a_step_is_lost():
    two = predict(STEP, RECIPE, 2, 40, FAST)
    assert two.step_ms == pytest.approx(5.0, abs=0.1)  # latency of hosts alone, of which is one
    assert two.images_per_second == pytest.approx(8000, rel=0.01)


def test_the_loss_of_the_whole_batch_is_everybodys():
    links = Links(memory=1e6, within_host=math.inf, latency_us=0)
    found = predict(STEP, RECIPE, 2, 40, links)
    assert found.loss_ms == pytest.approx(1000 * 8 * 4 * (120**2 - 60**2) / 1e6)
    assert affinity_bytes(RECIPE, 40) == 2 * 4 * 120**2


def test_an_epoch_shows_every_image_to_every_head():
    one = predict(STEP, RECIPE, 1, 20)
    cost = epoch_cost(one, RECIPE, 4000 * 3600, price_per_gpu_hour=3.0)
    assert cost.hours == pytest.approx(2)
    assert cost.price == pytest.approx(6)
    eight = predict(STEP, RECIPE, 8, 160)
    assert epoch_cost(eight, RECIPE, 1000, 3.0).price == pytest.approx(
        8 * 3.0 * epoch_cost(eight, RECIPE, 1000, 3.0).hours
    )


def test_a_recipe_is_counted_from_its_own_network():
    recipe = recipe_of(build_case("cifar10-paper", {"train.device": "cpu"}, []))
    assert len(recipe.norm_channels) == 36
    assert sum(recipe.norm_channels) == 64 * 7 + 128 * 9 + 256 * 13 + 512 * 7
    assert 21e6 < recipe.half_gradients + recipe.full_gradients < 22e6
    assert recipe.n_heads == 2
    assert recipe.image_bytes == 32 * 32 * 3
