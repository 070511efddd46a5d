"""Triplets against a loop over all of them."""

import pytest
import torch

from dcdc.losses.triplets import triplet_loss


@pytest.mark.parametrize("margin", [0.2, 1.0])
def test_the_loss_is_the_mean_over_the_triplets(margin):
    draws = torch.Generator().manual_seed(0)
    points, partners = torch.randn(2, 6, 4, generator=draws, dtype=torch.float64)
    others = torch.randn(6, 5, 4, generator=draws, dtype=torch.float64)
    is_other = torch.rand(6, 5, generator=draws) < 0.6

    def distance(left, right) -> float:
        left, right = left / left.norm(), right / right.norm()
        return sum((a - b) ** 2 for a, b in zip(left.tolist(), right.tolist(), strict=True))

    each = [
        max(0.0, distance(points[i], partners[i]) + margin - distance(points[i], others[i, j]))
        for i in range(6)
        for j in range(5)
        if is_other[i, j]
    ]
    found = triplet_loss(points, partners, others, is_other, margin)
    assert found.item() == pytest.approx(sum(each) / len(each))


def test_far_others_and_no_triplets_cost_nothing():
    points = torch.eye(3)
    others = -torch.eye(3)[:, None]
    assert triplet_loss(points, points, others, torch.ones(3, 1, dtype=torch.bool), 0.2) == 0
    near = points[:, None]
    assert triplet_loss(points, points, near, torch.ones(3, 1, dtype=torch.bool), 0.2) > 0.19
    assert triplet_loss(points, points, near, torch.zeros(3, 1, dtype=torch.bool), 0.2) == 0


def test_an_embedding_of_no_length_has_a_finite_gradient():
    points = torch.zeros(2, 3, requires_grad=True)
    all_of_them = torch.ones(2, 2, dtype=torch.bool)
    triplet_loss(points, torch.ones(2, 3), torch.ones(2, 2, 3), all_of_them, 0.2).backward()
    assert torch.isfinite(points.grad).all()
