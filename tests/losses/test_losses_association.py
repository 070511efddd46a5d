"""Walks between embeddings, against loops that take every step."""

import math

import pytest
import torch

from dcdc.losses.association import association_loss


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def shares(near: list[float]) -> list[float]:
    total = sum(math.exp(value) for value in near)
    return [math.exp(value) / total for value in near]


@pytest.mark.parametrize(
    ("classes", "n_visited"), [([0, 0, 1, 1], 5), ([0, 1, 2], 1), ([2, 0, 2, 2, 1], 7)]
)
def test_association_is_what_the_loops_say(classes, n_visited):
    starts, visited = drawn(len(classes), 3, seed=0), drawn(n_visited, 3, seed=1)
    dots = [[float(a @ b) for b in visited] for a in starts]
    there = [shares(row) for row in dots]
    back = [shares([row[j] for row in dots]) for j in range(n_visited)]
    walker = visit = 0.0
    for i, own in enumerate(classes):
        home = [j for j, other in enumerate(classes) if other == own]
        for j in home:
            ends = sum(there[i][k] * back[k][j] for k in range(n_visited))
            walker -= math.log(ends) / len(home) / len(classes)
    for k in range(n_visited):
        share = sum(there[i][k] for i in range(len(classes))) / len(classes)
        visit -= math.log(share) / n_visited
    found = association_loss(starts, torch.tensor(classes), visited)
    assert found.walker.item() == pytest.approx(walker, abs=1e-6)
    assert found.visit.item() == pytest.approx(visit, abs=1e-6)


def test_walks_that_come_home_and_go_everywhere_cost_least():
    far = 50 * torch.eye(3)
    found = association_loss(far.repeat(2, 1), torch.tensor([0, 1, 2] * 2), far)
    assert found.walker.item() == pytest.approx(math.log(2), abs=1e-5)  # evenly over its class
    assert found.visit.item() == pytest.approx(math.log(3), abs=1e-5)
    mixed = association_loss(far.repeat(2, 1), torch.tensor([0, 1, 2, 1, 2, 0]), far)
    assert mixed.walker > found.walker + 1
    one = association_loss(far[:1].repeat(3, 1), torch.tensor([0, 1, 2]), far)
    assert one.visit > found.visit + 1


def test_long_embeddings_have_a_finite_loss_and_gradient():
    starts = (1e4 * torch.eye(3)).requires_grad_()
    found = association_loss(starts, torch.tensor([0, 1, 2]), 1e4 * torch.eye(3).flip(0)[:2])
    (found.walker + found.visit).backward()
    assert torch.isfinite(found.walker)
    assert torch.isfinite(starts.grad).all()


@pytest.mark.parametrize("classes", [torch.zeros(3), torch.zeros(4, 1)])
def test_wrong_shapes_are_named(classes):
    with pytest.raises(ValueError, match="walks need embeddings of one length"):
        association_loss(torch.ones(4, 3), classes, torch.ones(5, 3))
