"""Instance contrast against a slow, obvious loop, and by its invariances."""

import math

import pytest
import torch

from dcdc.losses import instance_loss

SIZES = [(2, 3), (5, 4), (8, 16)]


def random_pair(n_images: int, n_numbers: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, n_images, n_numbers, generator=generator, dtype=torch.float64).unbind()


def cosine(u: list[float], v: list[float]) -> float:
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    return dot / math.sqrt(sum(a * a for a in u)) / math.sqrt(sum(b * b for b in v))


def slow_loss(first, second, temperature) -> float:
    """Every copy in turn: how surprising its twin is among all copies but itself."""
    n = len(first)
    rows = first.tolist() + second.tolist()
    losses = []
    for i, row in enumerate(rows):
        twin = i + n if i < n else i - n
        scores = {
            j: math.exp(cosine(row, other) / temperature) for j, other in enumerate(rows) if j != i
        }
        losses.append(-math.log(scores[twin] / sum(scores.values())))
    return sum(losses) / len(losses)


@pytest.mark.parametrize(("n_images", "n_numbers"), SIZES)
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_it_agrees_with_the_slow_loop(n_images, n_numbers, temperature):
    pair = random_pair(n_images, n_numbers)
    assert instance_loss(*pair, temperature).item() == pytest.approx(
        slow_loss(*pair, temperature), rel=1e-12
    )


def test_an_image_alone_has_nothing_to_be_told_from():
    assert instance_loss(*random_pair(1, 4), 0.2).item() == 0


def test_swapping_copies_reordering_images_or_scaling_a_row_changes_nothing():
    first, second = random_pair(6, 5)
    before = instance_loss(first, second, 0.3).item()
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    lengths = torch.tensor([0.01, 1, 3, 100, 0.5, 2], dtype=torch.float64)[:, None]
    for pair in (
        (second, first),
        (first[order], second[order]),
        (first * lengths, second),
        (first, second * lengths.flip(0)),
    ):
        assert instance_loss(*pair, 0.3).item() == pytest.approx(before, rel=1e-12)
    # but another image's copy is no twin
    assert instance_loss(first, second[order], 0.3).item() != pytest.approx(before, rel=1e-3)


def test_identical_copies_far_from_all_others_give_the_lowest_loss():
    apart = torch.eye(4, dtype=torch.float64)
    best = instance_loss(apart, apart, 0.2)
    assert best.item() == pytest.approx(math.log(1 + 6 * math.exp(-1 / 0.2)))
    for seed in range(5):
        moved = torch.randn(
            2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        assert instance_loss(apart + 0.2 * moved[0], apart + 0.2 * moved[1], 0.2) > best
    same = torch.ones_like(apart)
    assert instance_loss(same, same, 0.2).item() == pytest.approx(math.log(7))  # of 7 others, any


def test_gradient_is_the_slope_of_the_loss():
    pair = [part.requires_grad_() for part in random_pair(3, 4)]
    assert torch.autograd.gradcheck(lambda u, v: instance_loss(u, v, 0.4), pair)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_computed_in_float32_whatever_comes_in(dtype):
    first, second = (part.to(dtype) for part in random_pair(6, 5))
    loss = instance_loss(first, second, 0.2)
    assert loss.dtype == torch.float32
    assert loss == instance_loss(first.float(), second.float(), 0.2)


def test_autocast_does_not_lower_the_precision():
    first, second = (part.float() for part in random_pair(6, 5))
    outside = instance_loss(first, second, 0.2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert instance_loss(first, second, 0.2) == outside


@pytest.mark.parametrize("empty", ["one row", "a pair", "all rows"])
def test_a_row_of_zeros_stays_finite(empty):
    first, second = (part.float() for part in random_pair(4, 5))
    first[0 if empty != "all rows" else slice(None)] = 0
    if empty != "one row":
        second[0 if empty == "a pair" else slice(None)] = 0
    pair = [first.requires_grad_(), second.requires_grad_()]
    loss = instance_loss(*pair, 0.2)
    assert torch.isfinite(loss)
    assert all(torch.isfinite(part).all() for part in torch.autograd.grad(loss, pair))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (torch.ones(4, 3), torch.ones(5, 3), r"same shape .* got \(4, 3\) and \(5, 3\)"),
        (torch.ones(4, 3), torch.ones(4, 2), r"got \(4, 3\) and \(4, 2\)"),
        (torch.ones(4), torch.ones(4), r"images x numbers.* got \(4,\)"),
        (torch.ones(0, 3), torch.ones(0, 3), r"got \(0, 3\)"),
    ],
)
def test_wrong_shapes_are_named(first, second, message):
    with pytest.raises(ValueError, match=message) as caught:
        instance_loss(first, second, 0.2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        instance_loss(*random_pair(3, 3), temperature)
