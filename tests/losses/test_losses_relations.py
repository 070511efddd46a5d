"""Losses over pairs of images against loops that spell them out."""

import math

import pytest
import torch
from loss_examples import cosine, random_pair

from dcdc.losses import (
    Relations,
    earlier_loss,
    even_threshold,
    find_relations,
    indicator_loss,
    local_information_loss,
    relation_loss,
    sure_label_loss,
)

N_IMAGES, N_CLUSTERS = 7, 4


@pytest.fixture
def assign():
    return random_pair(N_IMAGES, 1, N_CLUSTERS, seed=1)[0]


@pytest.fixture
def earlier():
    return random_pair(N_IMAGES, 1, N_CLUSTERS, seed=2)[0]


def pairs():
    return [(i, j) for i in range(N_IMAGES) for j in range(N_IMAGES) if i != j]


@pytest.mark.parametrize(("lower", "upper"), [(0.3, 0.8), (0.6, 0.6), (0.0, 1.1)])
def test_relations_and_their_loss_are_what_the_loops_say(assign, earlier, lower, upper):
    relations = find_relations(earlier, lower, upper)
    rows, before = assign.tolist(), earlier.tolist()
    total, n_known = 0.0, 0
    for i, j in pairs():
        similarity, now = cosine(before[i], before[j]), cosine(rows[i], rows[j])
        assert relations.together[i, j].item() == (similarity >= upper)
        assert relations.apart[i, j].item() == (similarity < lower)
        if similarity >= upper:
            total, n_known = total - math.log(now), n_known + 1
        if similarity < lower:
            total, n_known = total - math.log(1 - now), n_known + 1
    assert not relations.together.diagonal().any()
    assert not relations.apart.diagonal().any()
    expected = total / max(1, n_known)
    assert relation_loss(assign, relations).item() == pytest.approx(expected, rel=1e-9)


def test_an_even_threshold_has_as_many_pairs_above_as_even_clusters():
    """Three clusters of eight images: 3 x 8 x 7 / 2 of the 24 x 23 / 2 pairs."""
    own = torch.eye(3, dtype=torch.float64).repeat(8, 1)
    noise = torch.rand(24, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = (own + 0.3 * noise).tolist()
    similarities = sorted(cosine(rows[i], rows[j]) for i in range(24) for j in range(i))
    threshold = even_threshold(torch.tensor(rows, dtype=torch.float64), 3)
    assert threshold.item() == pytest.approx(similarities[-3 * 8 * 7 // 2])


def test_as_many_clusters_as_images_still_leave_a_pair_together(earlier):
    assert find_relations(earlier, 0, even_threshold(earlier, N_IMAGES)).together.sum() == 2


def test_labels_and_earlier_answers_are_what_the_loops_say(assign, earlier):
    sure, soft = 0.0, 0.0
    for row, before in zip(assign.tolist(), earlier.tolist(), strict=True):
        if max(before) >= 0.6:
            sure -= math.log(row[before.index(max(before))]) / N_IMAGES
        soft -= sum(b * math.log(r) for b, r in zip(before, row, strict=True)) / N_IMAGES
    assert 0 < (earlier.max(1).values >= 0.6).sum() < N_IMAGES
    assert sure_label_loss(assign, earlier, 0.6).item() == pytest.approx(sure, rel=1e-12)
    assert earlier_loss(assign, earlier).item() == pytest.approx(soft, rel=1e-12)


def test_indicators_are_what_the_loop_says_and_nothing_is_lost_on_whole_ones(assign):
    lacking = sum(1 - sum(share**2 for share in row) for row in assign.tolist()) / N_IMAGES
    assert indicator_loss(assign).item() == pytest.approx(lacking)
    assert indicator_loss(torch.eye(4)) == 0
    assert indicator_loss(torch.full((2, 4), 0.25)).item() == pytest.approx(0.75)


def test_information_is_what_the_loop_says(earlier):
    scores = torch.randn(
        *(N_IMAGES, N_IMAGES, 5), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    together = find_relations(earlier, 0.5, 0.5).together
    high, low = [], []
    for i in range(N_IMAGES):
        for j in range(N_IMAGES):
            for place in range(5):
                score = scores[i, j, place].item()
                if i == j or together[i, j]:
                    high.append(math.log(1 + math.exp(-score)))
                else:
                    low.append(math.log(1 + math.exp(score)))
    assert len(high) > 5 * N_IMAGES
    expected = sum(high) / len(high) + sum(low) / len(low)
    assert local_information_loss(scores, together).item() == pytest.approx(expected, rel=1e-12)


def test_gradients_are_slopes(assign, earlier):
    relations = find_relations(earlier, 0.4, 0.7)
    logits = assign.log().requires_grad_()
    for loss in (
        lambda rows: relation_loss(rows, relations),
        lambda rows: sure_label_loss(rows, earlier, 0.5),
        lambda rows: earlier_loss(rows, earlier),
        indicator_loss,
    ):
        assert torch.autograd.gradcheck(lambda x, loss=loss: loss(x.softmax(1)), (logits,))


def test_losses_of_whole_and_empty_shares_stay_finite():
    logits = torch.tensor([[200.0, 0.0], [200.0, 0.0], [0.0, 200.0]], requires_grad=True)
    assign, other = logits.softmax(1), torch.eye(2)[[1, 0, 0]]
    everything = torch.ones(3, 3, dtype=torch.bool)
    for relations in (
        find_relations(other, 0.5, 0.5),
        Relations(everything, ~everything),
        Relations(~everything, everything),
        Relations(~everything, ~everything),
    ):
        loss = relation_loss(assign, relations)
        loss = loss + sure_label_loss(assign, other, 0.9) + earlier_loss(assign, other)
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()
    nothing = relation_loss(assign, Relations(~everything, ~everything))
    assert nothing == 0
