"""Self-labels and DEC's parts against slow, obvious loops, and at their edges."""

import math

import pytest
import torch
from loss_examples import random_pair

from dcdc.losses import (
    self_label_loss,
    sharpened_target,
    student_assignment,
    target_divergence,
)

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


def random_codes(n_images=6, n_code=3, n_clusters=4):
    generator = torch.Generator().manual_seed(0)
    draw = lambda n: torch.randn(n, n_code, generator=generator, dtype=torch.float64)  # noqa: E731
    return draw(n_images), draw(n_clusters)


def slow_assignment(codes, centres):
    rows = []
    for code in codes.tolist():
        closeness = []
        for centre in centres.tolist():
            squared = sum((a - b) ** 2 for a, b in zip(code, centre, strict=True))
            closeness.append(1 / (1 + squared))
        rows.append([value / sum(closeness) for value in closeness])
    return torch.tensor(rows, dtype=torch.float64)


def slow_target(assign):
    sizes = [sum(row[k] for row in assign.tolist()) for k in range(assign.shape[1])]
    rows = []
    for row in assign.tolist():
        weights = [value**2 / size for value, size in zip(row, sizes, strict=True)]
        rows.append([weight / sum(weights) for weight in weights])
    return torch.tensor(rows, dtype=torch.float64)


def test_dec_s_parts_are_as_the_slow_loops_have_them():
    codes, centres = random_codes()
    assign = student_assignment(codes, centres)
    torch.testing.assert_close(assign, slow_assignment(codes, centres))
    target = sharpened_target(assign)
    torch.testing.assert_close(target, slow_target(assign))
    slow = sum(
        p * math.log(p / q)
        for p_row, q_row in zip(target.tolist(), assign.tolist(), strict=True)
        for p, q in zip(p_row, q_row, strict=True)
    ) / len(codes)
    assert target_divergence(target, assign).item() == pytest.approx(slow, rel=1e-12)


def test_the_nearest_centre_has_the_largest_share_and_moving_all_changes_nothing():
    codes, centres = random_codes()
    assign = student_assignment(codes, centres)
    assert torch.equal(assign.argmax(1), torch.cdist(codes, centres).argmin(1))
    torch.testing.assert_close(assign.sum(1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(student_assignment(codes + 5, centres + 5), assign)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(student_assignment(codes, centres[order]), assign[:, order])


def test_targets_of_even_clusters_are_surer_than_what_they_come_from():
    assign = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    target = sharpened_target(assign)
    assert (target.max(1).values > assign.max(1).values).all()
    torch.testing.assert_close(target.sum(1), torch.ones(2))


def test_a_large_cluster_does_not_grow():
    assign = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.55, 0.45]])
    assert sharpened_target(assign)[3].argmax() == 1


def test_the_target_teaches_and_is_not_taught():
    codes, centres = random_codes()
    assign = student_assignment(codes, centres.requires_grad_())
    assert not sharpened_target(assign).requires_grad


def test_divergence_is_nothing_at_the_target_alone():
    assign = student_assignment(*random_codes())
    assert target_divergence(assign, assign).item() == pytest.approx(0, abs=1e-12)
    assert target_divergence(sharpened_target(assign), assign) > 0
    sure = torch.eye(3)
    assert target_divergence(sure, sure) == 0


def test_gradient_of_the_divergence_is_its_slope():
    codes, centres = (part.requires_grad_() for part in random_codes())
    target = sharpened_target(student_assignment(codes, centres))
    assert torch.autograd.gradcheck(
        lambda u, v: target_divergence(target, student_assignment(u, v)), (codes, centres)
    )
