"""Sizes of clusters in the losses: against slow loops, and by what each of them prefers."""

import math

import pytest
import torch

from dcdc.losses import balance_loss, dcdc_loss, sample_view_loss, scan_loss, self_label_loss
from dcdc.losses.sizes import FEWEST, image_weights, shares_of


def some(n: int = 12, k: int = 3, seed: int = 0) -> torch.Tensor:
    scores = 3 * torch.randn(n, k, generator=torch.Generator().manual_seed(seed))
    return scores.double().softmax(1)


def sure(counts: list[int]) -> torch.Tensor:
    """So many images in each cluster, each nearly sure of it."""
    rows = torch.eye(len(counts)).repeat_interleave(torch.tensor(counts), dim=0)
    return (0.97 * rows + 0.03 / len(counts)).double()


def test_free_shares_are_those_of_the_batch_but_none_is_tiny():
    assign = sure([8, 3, 1]).float()
    assert torch.equal(shares_of(assign, "free"), assign.mean(0).clamp_min(FEWEST / 3))
    assert shares_of(sure([99, 1, 0]), "free")[2].item() == pytest.approx(FEWEST / 3)
    assert shares_of(assign, "equal") is None


def test_given_shares_go_by_the_size_that_clusters_have():
    found = shares_of(sure([2, 9, 4]), (0.2, 0.7, 0.1))
    assert found.tolist() == [0.1, 0.7, 0.2]


def test_an_image_weighs_the_more_the_smaller_its_cluster():
    assign = torch.eye(2)[[0, 0, 0, 1]]
    assert image_weights(assign, assign.mean(0)).tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])


def slow_sample_view(assign, perturbed, temperature, shares):
    n = len(perturbed)
    original = assign.repeat(n // len(assign), 1)

    def weights(rows):
        found = [sum(row[k] / shares[k] for k in range(len(shares))) for row in rows]
        return [each / (sum(found) / n) for each in found]

    of_rows, of_others, total = weights(original), weights(perturbed), 0.0
    for i in range(n):
        parts = [
            of_others[j]
            * math.exp(torch.cosine_similarity(original[i], perturbed[j], dim=0) / temperature)
            for j in range(n)
        ]
        total += of_rows[i] * -math.log(parts[i] / sum(parts))
    return total / n


@pytest.mark.parametrize("sizes", ["free", (0.5, 0.3, 0.2)])
@pytest.mark.parametrize("copies", [1, 2])
def test_the_sample_view_of_unequal_sizes_against_a_loop(sizes, copies):
    assign, perturbed = some(), some(12 * copies, seed=1)
    found = sample_view_loss(assign, perturbed, 0.4, sizes)
    shares = shares_of(assign, sizes).tolist()
    slow = slow_sample_view(assign, perturbed, 0.4, shares)
    assert found.item() == pytest.approx(float(slow), abs=1e-9)


def pull_of(counts: list[int], sizes, border: float = 0.5) -> float:
    """Which way an image between the largest and the smallest cluster is drawn: above 0 into the
    smallest."""
    logits = torch.zeros(1, len(counts), dtype=torch.float64)
    logits[0, 1:-1] = -20
    logits.requires_grad_()
    rows = sure(counts)
    assign = torch.cat([rows, logits.softmax(1)])
    sample_view_loss(assign, assign, border, sizes).backward()
    return float(logits.grad[0, 0] - logits.grad[0, -1])


def test_equal_sizes_draw_an_image_into_the_smaller_cluster_and_free_ones_hardly():
    counts = [60, 30, 10]
    assert pull_of(counts, "equal") > 0
    assert abs(pull_of(counts, "free")) < pull_of(counts, "equal") / 3
    assert pull_of(counts, (0.4, 0.3, 0.3)) > 0  # there are to be more in the smallest
    assert pull_of(counts, (0.9, 0.07, 0.03)) < 0  # and here fewer


def test_balance_is_lowest_at_the_sizes_that_are_wanted():
    even, uneven = sure([10, 10, 10]), sure([21, 6, 3])
    assert balance_loss(even) < balance_loss(uneven)
    shares = tuple(uneven.mean(0).tolist())
    assert balance_loss(uneven, shares).item() == pytest.approx(0, abs=1e-9)
    assert balance_loss(even, shares) > 0.1
    for counts in ([10, 10, 10], [24, 4, 2]):
        assert balance_loss(sure(counts), "free") == 0
    lost = torch.tensor([[0.6, 0.399, 0.001]]).double().requires_grad_()
    balance_loss(lost, "free").backward()
    assert lost.grad[0, 2] < 0 == lost.grad[0, 0]


def test_self_labels_of_free_sizes_weigh_by_image_and_equal_ones_by_cluster():
    assign, perturbed = sure([3, 1]), some(4, 2, seed=2)
    each = [-math.log(perturbed[i, 0 if i < 3 else 1]) for i in range(4)]
    by_cluster = (sum(each[:3]) / 3, each[3])
    loss = {
        sizes: self_label_loss(assign, perturbed, 0.9, sizes)[0].item()
        for sizes in ("equal", "free", (0.9, 0.1))
    }
    assert loss["equal"] == pytest.approx(sum(by_cluster) / 2)
    assert loss["free"] == pytest.approx(sum(each) / 4)
    assert loss[0.9, 0.1] == pytest.approx(0.9 * by_cluster[0] + 0.1 * by_cluster[1])


def test_nobody_sure_is_no_loss_for_any_sizes():
    assign = torch.full((4, 2), 0.5)
    for sizes in ("equal", "free", (0.9, 0.1)):
        assert self_label_loss(assign, assign, 0.9, sizes)[0] == 0


@pytest.mark.parametrize("loss", [dcdc_loss, scan_loss])
@pytest.mark.parametrize("sizes", ["free", (0.5, 0.3, 0.2)])
def test_losses_of_several_heads_at_once_are_those_of_each(loss, sizes):
    """As sub-heads train on a CPU."""
    first, second = torch.stack([some(seed=0), some(seed=3)]), torch.stack([some(seed=1), some()])
    found = torch.vmap(lambda a, b: loss(a, b, balance_weight=1.0, sizes=sizes).total)(
        first, second
    )
    slow = [
        loss(a, b, balance_weight=1.0, sizes=sizes).total
        for a, b in zip(first, second, strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(slow))
