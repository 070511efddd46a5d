"""IIC's loss against a slow loop, its bounds, and what must not change it."""

import math

import pytest
import torch
from loss_examples import random_pair

from dcdc.losses import iic_loss, joint_assignment, mutual_information


def slow_mutual_information(assign, perturbed):
    n_images, n_clusters = assign.shape
    n_rows = len(perturbed)
    joint = [[0.0] * n_clusters for _ in range(n_clusters)]
    for row in range(n_rows):
        for i in range(n_clusters):
            for j in range(n_clusters):
                share = assign[row % n_images, i].item() * perturbed[row, j].item()
                joint[i][j] += share / n_rows / 2
                joint[j][i] += share / n_rows / 2
    across = [sum(joint[i][j] for j in range(n_clusters)) for i in range(n_clusters)]
    return sum(
        joint[i][j] * math.log(joint[i][j] / (across[i] * across[j]))
        for i in range(n_clusters)
        for j in range(n_clusters)
    )


@pytest.mark.parametrize(("n_images", "n_repeats", "n_clusters"), [(4, 1, 3), (5, 3, 2), (3, 2, 6)])
def test_as_the_slow_loop_has_it(n_images, n_repeats, n_clusters):
    pair = random_pair(n_images, n_repeats, n_clusters)
    found = mutual_information(*pair).item()
    assert found == pytest.approx(slow_mutual_information(*pair), rel=1e-12)


def test_the_joint_is_a_symmetric_distribution():
    joint = joint_assignment(*random_pair(7, 3, 4))
    torch.testing.assert_close(joint, joint.T)
    assert joint.sum().item() == pytest.approx(1)
    assert (joint > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_it_lies_between_nothing_and_log_k(seed):
    assert 0 <= mutual_information(*random_pair(9, 2, 5, seed)).item() <= math.log(5)


def test_sure_even_and_agreeing_is_the_most_there_is():
    sure = torch.eye(4, dtype=torch.float64).repeat(3, 1)
    assert mutual_information(sure, sure.repeat(2, 1)).item() == pytest.approx(math.log(4))


@pytest.mark.parametrize("kind", ["undecided", "collapsed"])
def test_undecided_and_collapsed_say_nothing(kind):
    rows = torch.full((6, 3), 1 / 3) if kind == "undecided" else torch.eye(3)[[0] * 6]
    assert mutual_information(rows, rows).item() == pytest.approx(0, abs=1e-6)


def test_names_of_clusters_order_of_images_and_which_copy_is_which_do_not_matter():
    assign, perturbed = random_pair(6, 1, 4)
    before = mutual_information(assign, perturbed)
    clusters, images = torch.tensor([2, 0, 3, 1]), torch.tensor([5, 1, 0, 4, 2, 3])
    for pair in (
        (assign[:, clusters], perturbed[:, clusters]),
        (assign[images], perturbed[images]),
        (perturbed, assign),
    ):
        torch.testing.assert_close(mutual_information(*pair), before)
    assert not torch.isclose(mutual_information(assign, perturbed[images]), before)


def test_the_loss_is_its_negative_under_its_name():
    pair = random_pair(5, 2, 3)
    loss = iic_loss(*pair)
    assert loss.total == -mutual_information(*pair)
    assert loss.terms == {"mutual_information": loss.total}


def test_gradient_is_the_slope_and_finite_where_a_cluster_is_empty():
    pair = tuple(part.requires_grad_() for part in random_pair(3, 2, 4))
    assert torch.autograd.gradcheck(mutual_information, pair)
    logits = torch.full((4, 3), 50.0)
    logits[:, 0] = 0
    logits[:, 1] = -1e4
    logits.requires_grad_()
    assign = torch.softmax(logits, dim=1)
    (gradient,) = torch.autograd.grad(iic_loss(assign, assign.detach()).total, logits)
    assert torch.isfinite(gradient).all()


def test_half_precision_is_lifted():
    assign, perturbed = (part.bfloat16() for part in random_pair(6, 2, 4))
    found = mutual_information(assign, perturbed)
    assert found.dtype == torch.float32
    assert found == mutual_information(assign.float(), perturbed.float())
