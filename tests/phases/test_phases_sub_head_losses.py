"""The losses of several sub-heads at once are those of each alone, with their gradients."""

import pytest
import torch

from dcdc.losses import DcdcLoss, dcdc_loss, iic_loss
from dcdc.phases.sub_head_losses import MOST_AT_ONCE, SubHeadLosses


def pairs(n_heads=4, n_images=9, n_clusters=3):
    logits = torch.randn(n_heads, 3 * n_images, n_clusters, generator=torch.manual_seed(0))
    logits.requires_grad_()
    shares = logits.softmax(2)
    return logits, [(rows[:n_images], rows[n_images:]) for rows in shares]


@pytest.mark.parametrize("loss", [dcdc_loss, iic_loss])
def test_at_once_is_one_by_one(loss):
    logits, given = pairs()
    at_once = SubHeadLosses(loss, at_once=True)(given)
    torch.stack([each.total for each in at_once]).sum().backward()
    again, given = pairs()
    alone = [loss(*pair) for pair in given]
    torch.stack([each.total for each in alone]).sum().backward()
    assert torch.allclose(logits.grad, again.grad, atol=1e-6)
    assert len(at_once) == 4
    for one, other in zip(at_once, alone, strict=True):
        assert one.total.item() == pytest.approx(other.total.item(), rel=1e-5)
        assert {k: v.item() for k, v in one.terms.items()} == pytest.approx(
            {k: v.item() for k, v in other.terms.items()}, rel=1e-5
        )


def test_a_loss_whose_path_depends_on_values_is_computed_one_by_one():
    shapes = []

    def own(assign, perturbed):
        shapes.append(assign.ndim)
        total = assign.mean() if assign.max() > 2 else perturbed.mean()
        return DcdcLoss(total, {})

    losses = SubHeadLosses(own, at_once=True)
    _, given = pairs()
    for _ in range(2):
        found = losses(given)
        assert [each.total.item() for each in found] == [pair[1].mean().item() for pair in given]
    assert len(shapes) == 1 + 4 + 4  # tried once


@pytest.mark.parametrize(
    ("how", "shape"),
    [
        ({"at_once": False}, (2, 8, 3)),  # compiled, say
        ({"at_once": True}, (2, MOST_AT_ONCE // 64 + 1, 64)),
        ({"at_once": True}, (1, 8, 3)),
    ],
)
def test_large_ones_and_compiled_ones_stay_apart(how, shape):
    n_heads, n_images, n_clusters = shape
    _, given = pairs(n_heads, n_images, n_clusters)
    calls = []

    def counted(*pair):
        calls.append(pair)
        return dcdc_loss(*pair)

    SubHeadLosses(counted, **how)(given)
    assert len(calls) == n_heads
