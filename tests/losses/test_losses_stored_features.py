"""TEMI's and TURTLE's losses against loops that spell them out."""

import math

import pytest
import torch

from dcdc.losses.stored_features import (
    agreement,
    pointwise_information,
    soft_cross_entropy,
    spread_entropy,
    temi_loss,
    turtle_loss,
)


def drawn(*shape: int, seed: int) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draws, dtype=torch.float64).softmax(dim=-1)


@pytest.mark.parametrize("beta", [0.6, 1.0])
@pytest.mark.parametrize(("n_heads", "n_images", "n_clusters"), [(3, 5, 4), (1, 1, 2), (2, 7, 10)])
def test_temi_is_what_the_loops_say(n_heads, n_images, n_clusters, beta):
    shape = (n_heads, n_images, n_clusters)
    students = (drawn(*shape, seed=0), drawn(*shape, seed=1))
    teachers = (drawn(*shape, seed=2), drawn(*shape, seed=3))
    shares = drawn(n_heads, n_clusters, seed=4)
    expected = []
    for h in range(n_heads):
        total = 0.0
        for i in range(n_images):
            weight = 0.0
            for g in range(n_heads):
                for k in range(n_clusters):
                    weight += teachers[0][g, i, k].item() * teachers[1][g, i, k].item() / n_heads
            for own, other in ((0, 1), (1, 0)):
                inside = 0.0
                for k in range(n_clusters):
                    both = students[own][h, i, k].item() * teachers[other][h, i, k].item()
                    inside += both**beta / shares[h, k].item()
                total -= weight * math.log(inside) / 2
        expected.append(total / n_images)
    assert temi_loss(students, teachers, shares, beta).tolist() == pytest.approx(expected)


def test_pairs_of_one_sure_cluster_have_the_most_information():
    sure = torch.eye(4)[None]
    even = torch.full((1, 4), 0.25)
    together = pointwise_information(sure, sure, even, 1.0)
    assert together.tolist() == [pytest.approx([math.log(4)] * 4)]
    apart = pointwise_information(sure, sure.flip(1), even, 1.0)
    assert (apart < together - 5).all()
    assert agreement(sure, sure).tolist() == [1, 1, 1, 1]
    assert agreement(sure, sure.flip(1)).tolist() == [0, 0, 0, 0]


def test_an_empty_cluster_has_a_finite_loss_and_gradient():
    student = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]], requires_grad=True)
    teacher = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    loss = temi_loss((student, student), (teacher, teacher), torch.tensor([[1.0, 0.0]]), 0.6)
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(student.grad).all()


@pytest.mark.parametrize(("n_spaces", "n_images", "n_clusters"), [(1, 4, 3), (2, 6, 5)])
def test_turtle_is_what_the_loops_say(n_spaces, n_images, n_clusters):
    logits = [10 * drawn(n_images, n_clusters, seed=s) for s in range(n_spaces)]
    labels = [drawn(n_images, n_clusters, seed=10 + s) for s in range(n_spaces)]
    expected = 0.0
    for space in range(n_spaces):
        for i in range(n_images):
            below = sum(math.exp(logits[space][i, k].item()) for k in range(n_clusters))
            for k in range(n_clusters):
                label = sum(each[i, k].item() for each in labels) / n_spaces
                share = math.exp(logits[space][i, k].item()) / below
                expected -= label * math.log(share) / n_images
        for k in range(n_clusters):
            mean = sum(labels[space][i, k].item() for i in range(n_images)) / n_images
            expected += 7.0 * mean * math.log(mean)
    assert turtle_loss(logits, labels, 7.0).item() == pytest.approx(expected)


def test_soft_labels_that_are_hard_give_the_usual_cross_entropy():
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    classes = torch.tensor([0, 3, 1, 2, 2, 0])
    soft = soft_cross_entropy(logits, torch.eye(4)[classes])
    assert soft.item() == pytest.approx(torch.nn.functional.cross_entropy(logits, classes).item())


def test_clusters_that_are_filled_evenly_have_the_highest_entropy():
    assert spread_entropy(torch.eye(4)).item() == pytest.approx(math.log(4))
    assert spread_entropy(torch.eye(4)[[0, 0, 0]]).item() == 0
