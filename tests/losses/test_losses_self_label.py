"""Self-labelling against a slow, obvious loop, and at its edges."""

import math

import pytest
import torch

from dcdc.losses import self_label_loss

SIZES = [(6, 1, 3), (9, 1, 5), (5, 3, 4)]


def random_pair(n_images: int, n_repeats: int, n_clusters: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda rows: torch.softmax(  # noqa: E731
        3 * torch.randn(rows, n_clusters, generator=generator, dtype=torch.float64), dim=1
    )
    return draw(n_images), draw(n_images * n_repeats)


def slow_loss(assign, assign_perturbed, threshold) -> tuple[float, int]:
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
def test_it_agrees_with_the_slow_loop(n_images, n_repeats, n_clusters, threshold):
    pair = random_pair(n_images, n_repeats, n_clusters)
    loss, n_sure = self_label_loss(*pair, threshold)
    slow, slow_sure = slow_loss(*pair, threshold)
    assert loss.item() == pytest.approx(slow, rel=1e-12)
    assert n_sure.item() == slow_sure
    assert n_sure.item() > 0  # or the case shows nothing


def test_where_nobody_is_sure_there_is_nothing_to_learn():
    assign, perturbed = random_pair(6, 2, 4)
    perturbed = perturbed.requires_grad_()
    loss, n_sure = self_label_loss(torch.full_like(assign, 0.25), perturbed, 0.9)
    assert (loss.item(), n_sure.item()) == (0, 0)
    (gradient,) = torch.autograd.grad(loss, perturbed)
    assert (gradient == 0).all()


def test_the_originals_are_labels_and_get_no_gradient():
    assign, perturbed = (part.requires_grad_() for part in random_pair(6, 1, 4))
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
    assign, perturbed = random_pair(5, 3, 4)
    assert self_label_loss(assign, perturbed, 0.0)[1].item() == 5
    # copy 1 of every image first: rows i and i + 5 have one label
    swapped = torch.cat([perturbed[10:], perturbed[:5], perturbed[5:10]])
    loss, again = (self_label_loss(assign, part, 0.6)[0].item() for part in (perturbed, swapped))
    assert again == pytest.approx(loss, rel=1e-12)


def test_gradient_is_the_slope_of_the_loss():
    assign, perturbed = random_pair(4, 2, 3)
    assert torch.autograd.gradcheck(
        lambda copies: self_label_loss(assign, copies, 0.5)[0], perturbed.requires_grad_()
    )


def test_half_precision_is_lifted():
    assign, perturbed = (part.bfloat16() for part in random_pair(6, 1, 3))
    loss, _ = self_label_loss(assign, perturbed, 0.5)
    assert loss.dtype == torch.float32
    assert loss == self_label_loss(assign.float(), perturbed.float(), 0.5)[0]


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match="got 6 rows for 4 images"):
        self_label_loss(torch.ones(4, 3), torch.ones(6, 3), 0.9)
    with pytest.raises(ValueError, match="got 3 and 2"):
        self_label_loss(torch.ones(4, 3), torch.ones(4, 2), 0.9)
