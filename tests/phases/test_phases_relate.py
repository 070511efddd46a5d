"""Relations of pairs: what the phase keeps, what its steps do, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, moved

from dcdc.config import with_values
from dcdc.errors import InputError
from dcdc.losses import (
    earlier_loss,
    find_relations,
    indicator_loss,
    local_information_loss,
    relation_loss,
    sure_label_loss,
)
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.relate import BAND, EARLIER, Relate

PHASE = Relate(
    epochs=3,
    batch_size=12,
    n_passes=2,
    upper=0.9,
    lower=0.5,
    earlier_weight=0.5,
    label_weight=5,
    label_threshold=0.4,
    indicator_weight=0.3,
    information_weight=0.05,
)
ROWS = torch.arange(12)


@pytest.fixture
def context(tiny_config, tiny_set):
    context = context_of(tiny_config, tiny_set, PHASE)
    PHASE.begin(context)
    PHASE.begin_epoch(context, 2)
    return context


def test_logits_are_spread_at_the_start(context):
    """As the weights are drawn, all images have nearly the same answer."""
    network = context.network.eval()
    images = context.model.prepare(context.store.batch(torch.arange(48)))
    with torch.no_grad():
        logits = network.heads[CLUSTER_HEAD](network.features(images))
    torch.testing.assert_close(logits.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(logits.std(0), torch.ones(3), atol=1e-3, rtol=0)


def test_answers_of_all_images_are_kept_for_an_epoch(context):
    answers = context.model.assign_store(context.store).probabilities
    np.testing.assert_allclose(context.state[EARLIER].numpy(), answers)
    kept = context.state[EARLIER]
    with torch.no_grad():
        context.network.heads[CLUSTER_HEAD].weight.mul_(2)
    PHASE.begin_epoch(context, 3)
    assert context.state[EARLIER] is kept  # a captured step reads this place
    assert not np.allclose(kept.numpy(), answers)


def test_the_band_closes_over_the_epochs(context):
    assert [PHASE.band(number) for number in (1, 2, 3)] == [
        pytest.approx(ends) for ends in ((0.5, 0.9), (0.6, 0.8), (0.7, 0.7))
    ]
    assert context.state[BAND].tolist() == pytest.approx([0.6, 0.8])
    assert replace(PHASE, epochs=1).band(1) == pytest.approx((0.5, 0.9))


def test_an_even_threshold_is_one_and_follows_the_answers(context):
    even = replace(PHASE, threshold="even")
    found = []
    for factor in (1, 3):
        with torch.no_grad():
            context.network.heads[CLUSTER_HEAD].weight.mul_(factor)
        even.begin_epoch(context, 1)
        lower, upper = context.state[BAND].tolist()
        assert lower == upper
        found.append(upper)
        relations = find_relations(context.state[EARLIER], lower, upper)
        # of 48 images in three clusters 3 x 16 x 15 ordered pairs
        assert relations.together.sum().item() == pytest.approx(3 * 16 * 15, abs=4)
    assert found[0] != found[1]


@pytest.mark.parametrize(("share", "number"), [(0, 1), (0.5, 2), (0.99, 3)])
def test_the_head_starts_again_by_k_means(context, share, number):
    """Its arg-max is then the nearest of the features' K centres."""
    phase = replace(PHASE, k_means_at=(share,))
    head = context.network.heads[CLUSTER_HEAD].weight.detach().clone()
    for other in {1, 2, 3} - {number}:
        phase.begin_epoch(context, other)
        assert torch.equal(context.network.heads[CLUSTER_HEAD].weight, head)
    phase.begin_epoch(context, number)
    features = context.model.features_of(context.store, np.arange(48))
    answers = context.state[EARLIER].argmax(1).numpy()
    centres = np.stack([features[answers == k].mean(0) for k in range(3)])
    nearest = ((features[:, None] - centres) ** 2).sum(2).argmin(1)
    assert (nearest == answers).mean() > 0.9


def test_a_step_minimises_what_its_parts_say(context):
    objective = PHASE.objective(context, TOOLS)
    objective.see(ROWS)
    images = context.store.batch(ROWS)
    (copies,) = copies_of(objective, images)
    generator = torch.Generator().manual_seed(3)
    assert torch.equal(copies, context.perturbed_copy(1)(images, generator))
    total, terms = objective.loss(context.network, (copies,), (CLUSTER_HEAD,))
    total.backward()

    network = context.network
    part = network.parts["relate"].discriminator
    maps = network.backbone.maps(network.preprocess(copies))
    features = network.backbone.features_of(maps)
    assign = network.heads[CLUSTER_HEAD](features).softmax(1)
    earlier = context.state[EARLIER][ROWS]
    relations = find_relations(earlier, 0.6, 0.8)
    assert 0 < relations.together.sum() < 12 * 11
    scores = torch.zeros(12, 12, maps[0, 0].numel())
    for i in range(12):
        for j in range(12):
            places = part.of_maps(maps[j].flatten(1).T)
            scores[i, j] = places @ part.of_features(features[i]) / 128**0.5
    expected = {
        "pairs": (1, relation_loss(assign, relations)),
        "earlier": (0.5, earlier_loss(assign, earlier)),
        "labels": (5, sure_label_loss(assign, earlier, 0.4)),
        "indicator": (0.3, indicator_loss(assign)),
        "information": (0.05, local_information_loss(scores, relations.together)),
    }
    for name, (_, term) in expected.items():
        torch.testing.assert_close(terms[name], term, rtol=1e-4, atol=1e-5)
    wanted = sum(weight * term for weight, term in expected.values())
    torch.testing.assert_close(total, wanted, rtol=1e-4, atol=1e-5)
    assert terms["together"].item() == pytest.approx(relations.together.float().mean().item())
    trained = ("backbone.", f"heads.{CLUSTER_HEAD}.", "parts.relate.")
    assert all(any(name.startswith(each) for name in moved(network)) for each in trained)
    assert all(name.startswith(trained) for name in moved(network))


def test_terms_that_weigh_nothing_are_left_out(tiny_config, tiny_set):
    plain = Relate(epochs=1, batch_size=12)
    context = context_of(tiny_config, tiny_set, plain)
    assert "relate" not in context.network.parts
    plain.begin(context)
    plain.begin_epoch(context, 1)
    objective = plain.objective(context, TOOLS)
    objective.see(ROWS)
    copies = copies_of(objective, context.store.batch(ROWS))
    total, terms = objective.loss(context.network, copies, (CLUSTER_HEAD,))
    assert terms.keys() == {"pairs", "together", "apart"}
    assert total == terms["pairs"]


def test_the_cluster_head_trains_in_every_pass():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert PHASE.passes(1, heads) == ((CLUSTER_HEAD,), (CLUSTER_HEAD,))
    assert PHASE.is_scored


def test_a_backbone_without_maps_is_refused(tiny_config, tiny_set):
    config = with_values(tiny_config, {"network.backbone": "resnet18"})
    with pytest.raises(InputError, match="ResNet does not show its maps"):
        context_of(config, tiny_set, PHASE)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("relate.n_passes", 0, "must be at least 1"),
        ("relate.upper", 1.5, "must be 0 to 1"),
        ("relate.lower", 0.995, "must be at most 0.99"),
        ("relate.k_means_at", (0, 1), "must be each from 0 to below 1"),
        ("network.sub_heads", 2, "must be 1 where relate.epochs is above 0"),
    ],
)
def test_wrong_settings_are_refused(tiny_config, key, value, problem):
    with pytest.raises(InputError, match=problem):
        with_values(tiny_config, {"phases": ("relate",), key: value})


NORMED = replace(PHASE, logit_norm=True, earlier_weight=0.5, information_weight=0.0)


@pytest.fixture
def normed(tiny_config, tiny_set):
    context = context_of(tiny_config, tiny_set, NORMED)
    NORMED.begin(context)
    with torch.no_grad():
        norm = context.network.parts["relate"].norm
        norm.weight.copy_(torch.tensor([2.0, 0.5, 3.0]))
        norm.bias.copy_(torch.tensor([0.3, -0.4, 0.1]))
    return context


def logits_of(context, rows=None):
    network = context.network.eval()
    images = context.store.batch(torch.arange(48) if rows is None else rows)
    with torch.no_grad():
        return network.heads[CLUSTER_HEAD](network.features(context.model.prepare(images)))


def test_normed_logits_are_those_of_the_batch_cut_off_at_zero(normed):
    NORMED.begin_epoch(normed, 1)
    network = normed.network.train()
    objective = NORMED.objective(normed, TOOLS)
    objective.see(ROWS)
    (copies,) = copies_of(objective, normed.store.batch(ROWS))
    _, terms = objective.loss(network, (copies,), (CLUSTER_HEAD,))
    with torch.no_grad():
        logits = network.heads[CLUSTER_HEAD](network.features(copies))
        away = (logits - logits.mean(0)) / (logits.var(0, unbiased=False) + 1e-5).sqrt()
        spread = away * torch.tensor([2.0, 0.5, 3.0]) + torch.tensor([0.3, -0.4, 0.1])
        assign = spread.clamp_min(0).softmax(1)
    wanted = sure_label_loss(assign, normed.state[EARLIER][ROWS], 0.4)
    torch.testing.assert_close(terms["labels"], wanted, rtol=1e-4, atol=1e-5)


def test_the_scale_of_the_head_makes_no_difference_to_normed_logits(normed):
    NORMED.begin_epoch(normed, 1)
    objective = NORMED.objective(normed, TOOLS)
    objective.see(ROWS)
    (copies,) = copies_of(objective, normed.store.batch(ROWS))
    totals = []
    for factor in (1, 5):
        with torch.no_grad():
            normed.network.heads[CLUSTER_HEAD].weight.mul_(factor)
            normed.network.heads[CLUSTER_HEAD].bias.add_(factor)
        normed.network.train()
        totals.append(objective.loss(normed.network, (copies,), (CLUSTER_HEAD,))[0].item())
    assert totals[0] == pytest.approx(totals[1], rel=1e-3)


def test_after_an_epoch_the_head_answers_as_the_norm_does(normed):
    NORMED.end_epoch(normed, {})
    logits = logits_of(normed)
    torch.testing.assert_close(logits.mean(0), torch.tensor([0.3, -0.4, 0.1]), atol=1e-4, rtol=0)
    torch.testing.assert_close(logits.std(0), torch.tensor([2.0, 0.5, 3.0]), atol=1e-3, rtol=0)
    NORMED.begin_epoch(normed, 2)
    wanted = logits.clamp_min(0).softmax(1)
    torch.testing.assert_close(normed.state[EARLIER], wanted, rtol=1e-4, atol=1e-5)


def test_the_norm_trains_with_the_network(normed):
    NORMED.begin_epoch(normed, 1)
    objective = NORMED.objective(normed, TOOLS)
    objective.see(ROWS)
    (copies,) = copies_of(objective, normed.store.batch(ROWS))
    objective.loss(normed.network.train(), (copies,), (CLUSTER_HEAD,))[0].backward()
    assert {"parts.relate.norm.weight", "parts.relate.norm.bias"} <= set(moved(normed.network))
