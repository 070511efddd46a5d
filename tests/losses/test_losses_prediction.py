"""Prediction against a slow, obvious loop, and by its invariances."""

import math

import pytest
import torch

from dcdc.losses import prediction_loss

SIZES = [(1, 3), (5, 4), (8, 16)]


def random_pair(n_images: int, n_numbers: int):
    generator = torch.Generator().manual_seed(0)
    shape = (2, 2 * n_images, n_numbers)
    return torch.randn(shape, generator=generator, dtype=torch.float64).unbind()


def direction(row: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in row))
    return [value / length for value in row]


def slow_loss(predicted, aim) -> float:
    """Every copy in turn: how far its prediction is from the direction of the other copy's aim."""
    n = len(predicted) // 2
    distances = []
    for i in range(2 * n):
        other = i + n if i < n else i - n
        ours, theirs = direction(predicted[i].tolist()), direction(aim[other].tolist())
        distances.append(sum((a - b) ** 2 for a, b in zip(ours, theirs, strict=True)))
    return sum(distances) / len(distances)


@pytest.mark.parametrize(("n_images", "n_numbers"), SIZES)
def test_it_agrees_with_the_slow_loop(n_images, n_numbers):
    pair = random_pair(n_images, n_numbers)
    assert prediction_loss(*pair).item() == pytest.approx(slow_loss(*pair), rel=1e-12)


def test_nothing_where_each_copy_foretells_the_other_and_four_where_it_says_the_opposite():
    _, aim = random_pair(4, 6)
    foretold = aim.roll(4, 0)
    assert prediction_loss(foretold, aim).item() == pytest.approx(0, abs=1e-12)
    assert prediction_loss(-foretold, aim).item() == pytest.approx(4)


def test_swapping_copies_reordering_images_or_scaling_a_row_changes_nothing():
    predicted, aim = random_pair(6, 5)
    before = prediction_loss(predicted, aim).item()
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    order = torch.cat([order, order + 6])
    lengths = torch.logspace(-2, 2, 12, dtype=torch.float64)[:, None]
    for pair in (
        (predicted.roll(6, 0), aim.roll(6, 0)),
        (predicted[order], aim[order]),
        (predicted * lengths, aim),
        (predicted, aim * lengths.flip(0)),
    ):
        assert prediction_loss(*pair).item() == pytest.approx(before, rel=1e-12)


def test_the_aim_has_no_gradient():
    predicted, aim = (rows.clone().requires_grad_() for rows in random_pair(3, 4))
    prediction_loss(predicted, aim).backward()
    assert aim.grad is None
    assert predicted.grad.abs().sum() > 0


def test_half_precision_is_compared_in_float32():
    predicted, aim = random_pair(5, 8)
    found = prediction_loss(predicted.bfloat16(), aim.bfloat16())
    assert found.dtype == torch.float32
    expected = prediction_loss(predicted.bfloat16().double(), aim.bfloat16().double())
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_row_of_zeros_gives_a_number():
    predicted, aim = random_pair(3, 4)
    predicted[0] = 0
    aim[1] = 0
    assert prediction_loss(predicted, aim).isfinite()


@pytest.mark.parametrize(
    ("predicted", "aim"),
    [((4, 3), (4, 2)), ((4, 3), (2, 3)), ((4,), (4,)), ((0, 3), (0, 3)), ((3, 3), (3, 3))],
)
def test_what_is_no_pair_of_copies_is_refused(predicted, aim):
    with pytest.raises(ValueError, match="need the same shape"):
        prediction_loss(torch.rand(predicted), torch.rand(aim))
