"""What corrected images learn, against loops that spell it out."""

import math

import pytest
import torch
from loss_examples import random_pair

from dcdc.losses import known_relations, label_loss


def test_labels_are_what_the_loop_says():
    assign = random_pair(6, 1, 4, seed=1)[0]
    labels, weights = torch.tensor([0, 3, 1, 1, 2, 0]), torch.tensor([1.0, 0, 2, 1, 0.5, 0])
    total = 0.0
    for row, label, weight in zip(assign.tolist(), labels.tolist(), weights.tolist(), strict=True):
        total -= weight * math.log(row[label])
    assert label_loss(assign, labels, weights).item() == pytest.approx(total / 4.5, rel=1e-9)


def test_labels_of_no_weight_lose_nothing_and_a_lost_share_is_finite():
    assign = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    labels = torch.tensor([1, 1])
    assert label_loss(assign, labels, torch.zeros(2)).item() == 0
    loss = label_loss(assign, labels, torch.ones(2))
    loss.backward()
    assert loss.isfinite()
    assert assign.grad.isfinite().all()


@pytest.mark.parametrize("apart", [[], [(0, 5), (7, 2)]])
def test_relations_are_what_the_loop_says(apart):
    n_images = 9
    rows = [5, 0, 2, 7, 7, 3]
    unit = {0: 1, 5: 5, 2: 2, 7: 7, 3: 1}
    keys = sorted([-1] + [a * n_images + b for one in apart for a, b in (one, one[::-1])])
    found = known_relations(
        torch.tensor(rows),
        torch.tensor([unit[row] for row in rows]),
        torch.tensor(keys),
        n_images,
    )
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            together = one != other and unit[one] == unit[other]
            assert found.together[i, j].item() == together, (one, other)
            is_apart = (one, other) in apart or (other, one) in apart
            assert found.apart[i, j].item() == is_apart, (one, other)
