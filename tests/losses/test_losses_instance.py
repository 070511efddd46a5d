"""Instance contrast against a slow, obvious loop, and by its invariances."""

import math

import pytest
import torch
from torch.nn import functional as F

from dcdc.losses import instance_loss

SIZES = [(2, 3), (5, 4), (8, 16)]


def random_copies(n_images: int, n_numbers: int, n_copies: int = 2, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    shape = (n_copies, n_images, n_numbers)
    return torch.randn(shape, generator=generator, dtype=torch.float64).unbind()


def cosine(u: list[float], v: list[float]) -> float:
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    return dot / math.sqrt(sum(a * a for a in u)) / math.sqrt(sum(b * b for b in v))


def slow_loss(copies, temperature) -> float:
    """Every copy and every other of its image in turn: how surprising it is among the copies of
    other images."""
    rows = [(image, row) for copy in copies for image, row in enumerate(copy.tolist())]
    losses = []
    for i, (image, row) in enumerate(rows):
        score = [math.exp(cosine(row, other) / temperature) for _, other in rows]
        others = sum(score[j] for j, (of, _) in enumerate(rows) if of != image)
        for j, (of, _) in enumerate(rows):
            if of == image and j != i:
                losses.append(-math.log(score[j] / (score[j] + others)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize(("n_images", "n_numbers"), SIZES)
@pytest.mark.parametrize("n_copies", [2, 3, 4])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_it_agrees_with_the_slow_loop(n_images, n_numbers, n_copies, temperature):
    copies = random_copies(n_images, n_numbers, n_copies)
    assert instance_loss(*copies, temperature=temperature).item() == pytest.approx(
        slow_loss(copies, temperature), rel=1e-12
    )


@pytest.mark.parametrize("n_copies", [2, 3])
def test_an_image_alone_has_nothing_to_be_told_from(n_copies):
    copies = [part.requires_grad_() for part in random_copies(1, 4, n_copies)]
    loss = instance_loss(*copies, temperature=0.2)
    assert loss.item() == 0
    assert all((slope == 0).all() for slope in torch.autograd.grad(loss, copies))


def test_of_two_copies_each_finds_its_twin_among_all_but_itself():
    """As it is usually told."""
    rows = torch.cat(random_copies(6, 5))
    logits = F.cosine_similarity(rows[:, None], rows, dim=2) / 0.3
    twin = torch.arange(12).roll(6)
    usual = F.cross_entropy(logits.fill_diagonal_(-torch.inf), twin)
    torch.testing.assert_close(instance_loss(*rows.chunk(2), temperature=0.3), usual)


def test_swapping_copies_reordering_images_or_scaling_a_row_changes_nothing():
    first, second, third = random_copies(6, 5, 3)
    before = instance_loss(first, second, third, temperature=0.3).item()
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    lengths = torch.tensor([0.01, 1, 3, 100, 0.5, 2], dtype=torch.float64)[:, None]
    for copies in (
        (second, first, third),
        (third, second, first),
        (first[order], second[order], third[order]),
        (first * lengths, second, third),
        (first, second * lengths.flip(0), third),
    ):
        assert instance_loss(*copies, temperature=0.3).item() == pytest.approx(before, rel=1e-12)
    # but another image's copy is no twin
    moved = instance_loss(first, second[order], third, temperature=0.3)
    assert moved.item() != pytest.approx(before, rel=1e-3)


def test_identical_copies_far_from_all_others_give_the_lowest_loss():
    apart = torch.eye(4, dtype=torch.float64)
    best = instance_loss(apart, apart, temperature=0.2)
    assert best.item() == pytest.approx(math.log(1 + 6 * math.exp(-1 / 0.2)))
    for seed in range(5):
        moved = torch.randn(
            2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        assert instance_loss(apart + 0.2 * moved[0], apart + 0.2 * moved[1], temperature=0.2) > best
    same = torch.ones_like(apart)
    of_seven_any = instance_loss(same, same, temperature=0.2)
    assert of_seven_any.item() == pytest.approx(math.log(7))


def test_gradient_is_the_slope_of_the_loss():
    pair = [part.requires_grad_() for part in random_copies(3, 4)]
    assert torch.autograd.gradcheck(lambda u, v: instance_loss(u, v, temperature=0.4), pair)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_computed_in_float32_whatever_comes_in(dtype):
    first, second = (part.to(dtype) for part in random_copies(6, 5))
    loss = instance_loss(first, second, temperature=0.2)
    assert loss.dtype == torch.float32
    assert loss == instance_loss(first.float(), second.float(), temperature=0.2)


def test_autocast_does_not_lower_the_precision():
    first, second = (part.float() for part in random_copies(6, 5))
    outside = instance_loss(first, second, temperature=0.2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert instance_loss(first, second, temperature=0.2) == outside


@pytest.mark.parametrize("empty", ["one row", "a pair", "all rows"])
def test_a_row_of_zeros_stays_finite(empty):
    first, second = (part.float() for part in random_copies(4, 5))
    first[0 if empty != "all rows" else slice(None)] = 0
    if empty != "one row":
        second[0 if empty == "a pair" else slice(None)] = 0
    pair = [first.requires_grad_(), second.requires_grad_()]
    loss = instance_loss(*pair, temperature=0.2)
    assert torch.isfinite(loss)
    assert all(torch.isfinite(part).all() for part in torch.autograd.grad(loss, pair))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 3), (5, 3)], r"same shape .* got \(4, 3\) and \(5, 3\)"),
        ([(4, 3), (4, 2)], r"got \(4, 3\) and \(4, 2\)"),
        ([(4, 3), (4, 3), (3, 3)], r"got \(4, 3\) and \(4, 3\) and \(3, 3\)"),
        ([(4,), (4,)], r"images x numbers.* got \(4,\)"),
        ([(0, 3), (0, 3)], r"got \(0, 3\)"),
        ([(4, 3)], r"two copies or more .* got \(4, 3\)"),
        ([], "two copies or more .* got none"),
    ],
)
def test_wrong_shapes_are_named(shapes, message):
    with pytest.raises(ValueError, match=message) as caught:
        instance_loss(*map(torch.ones, shapes), temperature=0.2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        instance_loss(*random_copies(3, 3), temperature=temperature)
