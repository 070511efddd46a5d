import math

import pytest
import torch
from loss_examples import cosine, random_pair
from torch.nn import functional as F

from dcdc.losses import (
    byol_loss,
    column_contrast_loss,
    nt_xent_loss,
    self_label_loss,
)


def random_copies(n_images: int, n_numbers: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    shape = (2, n_images, n_numbers)
    return torch.randn(shape, generator=generator, dtype=torch.float64).unbind()


def slow_nt_xent(first, second, temperature) -> float:
    """Every copy in turn: how surprising the other one of its image is among all but itself."""
    n_images = len(first)
    rows = [*first.tolist(), *second.tolist()]
    losses = []
    for i, row in enumerate(rows):
        score = [math.exp(cosine(row, other) / temperature) for other in rows]
        other_copy = (i + n_images) % len(rows)
        losses.append(-math.log(score[other_copy] / (sum(score) - score[i])))
    return sum(losses) / len(losses)


@pytest.mark.parametrize(("n_images", "n_numbers"), [(2, 3), (5, 4), (8, 16)])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_nt_xent_agrees_with_the_slow_loop(n_images, n_numbers, temperature):
    copies = random_copies(n_images, n_numbers)
    assert nt_xent_loss(*copies, temperature).item() == pytest.approx(
        slow_nt_xent(*copies, temperature), rel=1e-12
    )


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_column_contrast_agrees_with_a_slow_loop_over_clusters(temperature):
    """Every cluster's column over one copy finds its own over the other among all but itself."""
    first, second = random_pair(5, 1, 3)
    columns = [
        [table[i][k].item() for i in range(5)] for table in (first, second) for k in range(3)
    ]
    losses = []
    for at, column in enumerate(columns):
        score = [math.exp(cosine(column, other) / temperature) for other in columns]
        losses.append(-math.log(score[(at + 3) % 6] / (sum(score) - score[at])))
    found = column_contrast_loss(first, second, temperature).item()
    assert found == pytest.approx(sum(losses) / 6, rel=1e-12)


def test_column_contrast_is_lower_where_clusters_are_told_apart():
    sure = torch.eye(3, dtype=torch.float64).repeat(4, 1)
    even = torch.full((12, 3), 1 / 3, dtype=torch.float64)
    apart = column_contrast_loss(sure, sure, 1.0)
    assert apart < column_contrast_loss(even, even, 1.0)
    assert apart < column_contrast_loss(sure, sure.roll(1, dims=1), 1.0)


def test_an_image_alone_has_nothing_to_be_told_from():
    copies = [part.requires_grad_() for part in random_copies(1, 4)]
    loss = nt_xent_loss(*copies, temperature=0.2)
    assert loss.item() == 0
    assert all((slope == 0).all() for slope in torch.autograd.grad(loss, copies))


def test_each_copy_finds_the_other_among_all_but_itself():
    """As it is usually told."""
    rows = torch.cat(random_copies(6, 5))
    logits = F.cosine_similarity(rows[:, None], rows, dim=2) / 0.3
    other_copy = torch.arange(12).roll(6)
    usual = F.cross_entropy(logits.fill_diagonal_(-torch.inf), other_copy)
    torch.testing.assert_close(nt_xent_loss(*rows.chunk(2), temperature=0.3), usual)


def test_swapping_copies_reordering_images_or_scaling_a_row_does_not_change_nt_xent():
    first, second = random_copies(6, 5)
    before = nt_xent_loss(first, second, temperature=0.3).item()
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    lengths = torch.tensor([0.01, 1, 3, 100, 0.5, 2], dtype=torch.float64)[:, None]
    for copies in (
        (second, first),
        (first[order], second[order]),
        (first * lengths, second),
        (first, second * lengths.flip(0)),
    ):
        assert nt_xent_loss(*copies, temperature=0.3).item() == pytest.approx(before, rel=1e-12)
    # but another image's copy is not the one to find
    moved = nt_xent_loss(first, second[order], temperature=0.3)
    assert moved.item() != pytest.approx(before, rel=1e-3)


def test_identical_copies_far_from_all_others_give_the_lowest_loss():
    apart = torch.eye(4, dtype=torch.float64)
    best = nt_xent_loss(apart, apart, temperature=0.2)
    assert best.item() == pytest.approx(math.log(1 + 6 * math.exp(-1 / 0.2)))
    for seed in range(5):
        moved = torch.randn(
            2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        assert nt_xent_loss(apart + 0.2 * moved[0], apart + 0.2 * moved[1], temperature=0.2) > best
    same = torch.ones_like(apart)
    of_seven_any = nt_xent_loss(same, same, temperature=0.2)
    assert of_seven_any.item() == pytest.approx(math.log(7))


def test_gradient_is_the_slope_of_the_loss():
    pair = [part.requires_grad_() for part in random_copies(3, 4)]
    assert torch.autograd.gradcheck(lambda u, v: nt_xent_loss(u, v, temperature=0.4), pair)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_computed_in_float32_whatever_comes_in(dtype):
    first, second = (part.to(dtype) for part in random_copies(6, 5))
    loss = nt_xent_loss(first, second, temperature=0.2)
    assert loss.dtype == torch.float32
    assert loss == nt_xent_loss(first.float(), second.float(), temperature=0.2)


def test_autocast_does_not_lower_the_precision():
    first, second = (part.float() for part in random_copies(6, 5))
    outside = nt_xent_loss(first, second, temperature=0.2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nt_xent_loss(first, second, temperature=0.2) == outside


@pytest.mark.parametrize("empty", ["one row", "a pair", "all rows"])
def test_a_row_of_zeros_stays_finite(empty):
    first, second = (part.float() for part in random_copies(4, 5))
    first[0 if empty != "all rows" else slice(None)] = 0
    if empty != "one row":
        second[0 if empty == "a pair" else slice(None)] = 0
    pair = [first.requires_grad_(), second.requires_grad_()]
    loss = nt_xent_loss(*pair, temperature=0.2)
    assert torch.isfinite(loss)
    assert all(torch.isfinite(part).all() for part in torch.autograd.grad(loss, pair))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 3), (5, 3)], r"same shape .* got \(4, 3\) and \(5, 3\)"),
        ([(4, 3), (4, 2)], r"got \(4, 3\) and \(4, 2\)"),
        ([(4,), (4,)], r"images x numbers.* got \(4,\)"),
        ([(0, 3), (0, 3)], r"got \(0, 3\)"),
    ],
)
def test_copies_of_wrong_shapes_are_named(shapes, message):
    with pytest.raises(ValueError, match=message) as caught:
        nt_xent_loss(*map(torch.ones, shapes), temperature=0.2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        nt_xent_loss(*random_copies(3, 3), temperature=temperature)


def predicted_and_target(n_images: int, n_numbers: int):
    generator = torch.Generator().manual_seed(0)
    shape = (2, 2 * n_images, n_numbers)
    return torch.randn(shape, generator=generator, dtype=torch.float64).unbind()


def direction(row: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in row))
    return [value / length for value in row]


def slow_byol(predicted, target) -> float:
    """Every copy in turn: how far its prediction is from the direction of the other's target."""
    n = len(predicted) // 2
    distances = []
    for i in range(2 * n):
        other = i + n if i < n else i - n
        ours, theirs = direction(predicted[i].tolist()), direction(target[other].tolist())
        distances.append(sum((a - b) ** 2 for a, b in zip(ours, theirs, strict=True)))
    return sum(distances) / len(distances)


@pytest.mark.parametrize(("n_images", "n_numbers"), [(1, 3), (5, 4), (8, 16)])
def test_byol_agrees_with_the_slow_loop(n_images, n_numbers):
    pair = predicted_and_target(n_images, n_numbers)
    assert byol_loss(*pair).item() == pytest.approx(slow_byol(*pair), rel=1e-12)


def test_nothing_where_each_copy_predicts_the_other_and_four_where_it_says_the_opposite():
    _, target = predicted_and_target(4, 6)
    foreseen = target.roll(4, 0)
    assert byol_loss(foreseen, target).item() == pytest.approx(0, abs=1e-12)
    assert byol_loss(-foreseen, target).item() == pytest.approx(4)


def test_swapping_copies_reordering_images_or_scaling_a_row_does_not_change_byol():
    predicted, target = predicted_and_target(6, 5)
    before = byol_loss(predicted, target).item()
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    order = torch.cat([order, order + 6])
    lengths = torch.logspace(-2, 2, 12, dtype=torch.float64)[:, None]
    for pair in (
        (predicted.roll(6, 0), target.roll(6, 0)),
        (predicted[order], target[order]),
        (predicted * lengths, target),
        (predicted, target * lengths.flip(0)),
    ):
        assert byol_loss(*pair).item() == pytest.approx(before, rel=1e-12)


def test_the_target_has_no_gradient():
    predicted, target = (rows.clone().requires_grad_() for rows in predicted_and_target(3, 4))
    byol_loss(predicted, target).backward()
    assert target.grad is None
    assert predicted.grad.abs().sum() > 0


def test_half_precision_is_compared_in_float32():
    predicted, target = predicted_and_target(5, 8)
    found = byol_loss(predicted.bfloat16(), target.bfloat16())
    assert found.dtype == torch.float32
    expected = byol_loss(predicted.bfloat16().double(), target.bfloat16().double())
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_prediction_of_zeros_gives_a_number():
    predicted, target = predicted_and_target(3, 4)
    predicted[0] = 0
    target[1] = 0
    assert byol_loss(predicted, target).isfinite()


@pytest.mark.parametrize(
    ("predicted", "target"),
    [((4, 3), (4, 2)), ((4, 3), (2, 3)), ((4,), (4,)), ((0, 3), (0, 3)), ((3, 3), (3, 3))],
)
def test_what_is_no_pair_of_copies_is_refused(predicted, target):
    with pytest.raises(ValueError, match="need the same shape"):
        byol_loss(torch.rand(predicted), torch.rand(target))


SIZES = [(6, 1, 3), (9, 1, 5), (5, 3, 4)]


def sure_pair(n_images: int, n_repeats: int, n_clusters: int):
    return random_pair(n_images, n_repeats, n_clusters, scale=3.0)


def slow_self_label(assign, assign_perturbed, threshold) -> tuple[float, int]:
    """The mean over clusters of the mean surprise at the copies of the images sure to be there."""
    by_cluster: dict[int, list[float]] = {}
    rows = assign.tolist()
    for i, perturbed in enumerate(assign_perturbed.tolist()):
        row = rows[i % len(rows)]
        if max(row) > threshold:
            label = row.index(max(row))
            by_cluster.setdefault(label, []).append(-math.log(perturbed[label]))
    means = [sum(surprises) / len(surprises) for surprises in by_cluster.values()]
    n_sure = sum(max(row) > threshold for row in rows)
    return (sum(means) / len(means) if means else 0.0), n_sure


@pytest.mark.parametrize(("n_images", "n_repeats", "n_clusters"), SIZES)
@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.8])
def test_self_labels_agree_with_the_slow_loop(n_images, n_repeats, n_clusters, threshold):
    pair = sure_pair(n_images, n_repeats, n_clusters)
    loss, n_sure = self_label_loss(*pair, threshold)
    slow, slow_sure = slow_self_label(*pair, threshold)
    assert loss.item() == pytest.approx(slow, rel=1e-12)
    assert n_sure.item() == slow_sure
    assert n_sure.item() > 0  # or the case shows nothing


def test_where_nobody_is_sure_there_is_nothing_to_learn():
    assign, perturbed = sure_pair(6, 2, 4)
    perturbed = perturbed.requires_grad_()
    loss, n_sure = self_label_loss(torch.full_like(assign, 0.25), perturbed, 0.9)
    assert (loss.item(), n_sure.item()) == (0, 0)
    (gradient,) = torch.autograd.grad(loss, perturbed)
    assert (gradient == 0).all()


def test_the_originals_are_labels_and_get_no_gradient():
    assign, perturbed = (part.requires_grad_() for part in sure_pair(6, 1, 4))
    self_label_loss(assign, perturbed, 0.5)[0].backward()
    assert assign.grad is None
    assert perturbed.grad.abs().sum() > 0


def test_unsure_images_get_no_gradient():
    assign = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.1, 0.9]])
    perturbed = torch.full((6, 2), 0.5, requires_grad=True)
    loss, _ = self_label_loss(assign, perturbed, 0.8)
    (gradient,) = torch.autograd.grad(loss, perturbed)
    assert [bool(row.any()) for row in gradient] == [True, False, True] * 2


def test_every_cluster_with_a_sure_image_weighs_the_same():
    """Nine images in one cluster, one in another, none in the third."""
    assign = torch.eye(3)[torch.tensor([0] * 9 + [1])]
    perturbed = torch.full((10, 3), 1 / 3, requires_grad=True)
    loss, n_sure = self_label_loss(assign, perturbed, 0.9)
    (gradient,) = torch.autograd.grad(loss, perturbed)
    assert n_sure.item() == 10
    assert loss.item() == pytest.approx(math.log(3))
    assert gradient[:, 0].sum().item() == pytest.approx(gradient[9, 1].item())
    assert gradient[9, 1].item() == pytest.approx(-3 / 2)


def test_the_threshold_itself_is_not_sure():
    assign, perturbed = torch.tensor([[0.75, 0.25]]), torch.tensor([[0.5, 0.5]])
    at, n_at = self_label_loss(assign, perturbed, 0.75)
    below, n_below = self_label_loss(assign, perturbed, 0.7499)
    assert (at.item(), n_at.item()) == (0, 0)
    assert (below.item(), n_below.item()) == (pytest.approx(math.log(2)), 1)


def test_a_copy_with_no_share_at_all_in_its_label_stays_finite():
    assign = torch.eye(2)
    perturbed = torch.eye(2).flip(0).requires_grad_()
    loss, _ = self_label_loss(assign, perturbed, 0.9)
    (gradient,) = torch.autograd.grad(loss, perturbed)
    assert 80 < loss.item() < 100
    assert torch.isfinite(gradient).all()


def test_sure_images_are_counted_once_however_many_copies_they_have():
    assign, perturbed = sure_pair(5, 3, 4)
    assert self_label_loss(assign, perturbed, 0.0)[1].item() == 5
    # copy 1 of every image first: rows i and i + 5 have one label
    swapped = torch.cat([perturbed[10:], perturbed[:5], perturbed[5:10]])
    loss, again = (self_label_loss(assign, part, 0.6)[0].item() for part in (perturbed, swapped))
    assert again == pytest.approx(loss, rel=1e-12)


def test_gradient_of_self_labels_is_the_slope_of_their_loss():
    assign, perturbed = sure_pair(4, 2, 3)
    assert torch.autograd.gradcheck(
        lambda copies: self_label_loss(assign, copies, 0.5)[0], perturbed.requires_grad_()
    )


def test_half_precision_is_lifted():
    assign, perturbed = (part.bfloat16() for part in sure_pair(6, 1, 3))
    loss, _ = self_label_loss(assign, perturbed, 0.5)
    assert loss.dtype == torch.float32
    assert loss == self_label_loss(assign.float(), perturbed.float(), 0.5)[0]


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match="got 6 rows for 4 images"):
        self_label_loss(torch.ones(4, 3), torch.ones(6, 3), 0.9)
    with pytest.raises(ValueError, match="got 3 and 2"):
        self_label_loss(torch.ones(4, 3), torch.ones(4, 2), 0.9)
