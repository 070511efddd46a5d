"""Heads on frozen features: how they start, what their steps do, and which one answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from phase_examples import TOOLS, context_of, moved

from dcdc.config import with_values
from dcdc.engine.k_means import balanced_centres
from dcdc.errors import InputError
from dcdc.losses import dcdc_loss
from dcdc.metrics import score
from dcdc.metrics.directions import directions
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.frozen_heads import (
    DIRECTIONS,
    SHARPNESS,
    FrozenHeads,
    FrozenHeadsPart,
    _directions_of,
)
from dcdc.phases.heads import NEIGHBOURS

PHASE = FrozenHeads(epochs=2, batch_size=12, neighbours=3, n_heads=4)


@pytest.fixture
def context(tiny_config, tiny_set):
    context = context_of(tiny_config, tiny_set, PHASE)
    PHASE.begin(context)
    return context


def one_step(context, rows):
    objective = PHASE.objective(context, TOOLS)
    objective.see(rows)
    return objective.loss(context.network, (), (CLUSTER_HEAD,))


def test_each_head_compares_an_image_with_its_neighbour(context):
    part = context.network.parts["frozen_heads"]
    images = torch.arange(12)
    rows = PHASE.batches(images[None], context, torch.Generator().manual_seed(0))[0]
    assert rows[:12].equal(images)
    near = context.state[NEIGHBOURS]
    assert all(int(rows[12 + row]) in near[row].tolist() for row in range(12))
    total, terms = one_step(context, rows)
    found = directions(context.model.features_of(context.store, np.arange(len(context.store))))
    losses = []
    for weight, bias in zip(part.weight, part.bias, strict=True):
        assign = torch.softmax(torch.from_numpy(found) @ weight.T + bias, dim=1)
        losses.append(dcdc_loss(assign[rows[:12]], assign[rows[12:]], 0.5).total)
    torch.testing.assert_close(total, torch.stack(losses).mean())
    torch.testing.assert_close(terms["frozen_heads"], torch.stack(losses).min())
    for number, loss in enumerate(losses):
        torch.testing.assert_close(terms[f"frozen_heads/{number + 1}"], loss)


def test_the_backbone_and_the_networks_heads_have_no_gradient(context):
    total, _ = one_step(context, torch.arange(24))
    total.backward()
    assert moved(context.network) == {"parts.frozen_heads.weight", "parts.frozen_heads.bias"}


def test_the_head_with_the_lowest_loss_becomes_the_networks(context):
    part = context.network.parts["frozen_heads"]
    torch.nn.init.normal_(part.weight, std=5.0)
    means = {f"frozen_heads/{number + 1}": loss for number, loss in enumerate((3, 2.5, 1, 2))}
    PHASE.end_epoch(context, means)
    head = context.network.heads[CLUSTER_HEAD]
    features = torch.from_numpy(context.model.features_of(context.store, np.arange(20)))
    away = features - part.middle
    of_mean_length = part.middle + part.length * away / away.norm(dim=1, keepdim=True)
    wanted = part(away / away.norm(dim=1, keepdim=True))[2]
    torch.testing.assert_close(torch.softmax(head(of_mean_length), dim=1), wanted)
    assert context.model.assign_store(context.store).assignments.max() > 0


def test_heads_start_from_k_means_and_every_second_one_from_equal_sizes():
    features = np.random.default_rng(0).normal(size=(240, 16)).astype(np.float32)
    part = FrozenHeadsPart(4, torch.nn.Linear(16, 3))
    part.start(features, seed=0)
    torch.testing.assert_close(part.weight.norm(dim=2), torch.full((4, 3), SHARPNESS))
    points = directions(features)
    for plain, even in (part.weight[:2], part.weight[2:]):
        wanted = SHARPNESS * balanced_centres(points, plain.detach().numpy())
        np.testing.assert_allclose(even.detach().numpy(), wanted, atol=1e-3)
    assert not torch.allclose(part.weight[0], part.weight[2], atol=1e-2)
    again = FrozenHeadsPart(4, torch.nn.Linear(16, 3))
    again.start(features, seed=0)
    assert torch.equal(again.weight, part.weight)


@pytest.mark.parametrize("sizes", ["free", (0.03, 0.25, 0.03, 0.38, 0.31)])
def test_heads_of_unequal_sizes_start_from_joined_groups(sizes):
    """K-Means cuts the large kinds, and joins the small ones."""
    targets = np.repeat(np.arange(5), [240, 200, 160, 20, 20])
    noise = np.random.default_rng(0).normal(size=(640, 16))
    features = (4 * np.eye(5, 16)[targets] + noise).astype(np.float32)
    points, accuracy = torch.from_numpy(directions(features)), {}
    for each in ("equal", sizes):
        part = FrozenHeadsPart(4, torch.nn.Linear(16, 5))
        before = torch.get_rng_state()
        part.start(features, seed=0, sizes=each)
        assert torch.equal(torch.get_rng_state(), before)
        with torch.no_grad():
            found = part(points).argmax(2).numpy()
        accuracy[each] = [score(targets, of_head)["acc"] for of_head in found]
    assert min(accuracy[sizes]) > 0.97
    assert max(accuracy["equal"]) < 0.9


def test_outliers_have_no_part_in_where_heads_start():
    """A group of them, half as large as a cluster, would take a centre."""
    random = np.random.default_rng(0)
    targets = np.repeat([0, 1, 2], [100, 100, 45])
    middles = np.zeros((3, 16))
    middles[0, 0], middles[1, 0], middles[2, 1] = -2, 2, 30
    features = (middles[targets] + 0.3 * random.normal(size=(245, 16))).astype(np.float32)
    points = torch.from_numpy(directions(features))[:200]
    accuracy = {}
    for outliers in (False, True):
        part = FrozenHeadsPart(2, torch.nn.Linear(16, 2))
        part.start(features, seed=0, outliers=outliers)
        with torch.no_grad():
            found = part(points).argmax(2).numpy()
        accuracy[outliers] = [score(targets[:200], each)["acc"] for each in found]
    assert min(accuracy[True]) == 1.0
    assert accuracy[False][0] == 0.5


@pytest.mark.parametrize("sizes", ["equal", "free", (0.2, 0.3, 0.5)])
def test_the_loss_of_heads_follows_the_sizes(tiny_config, tiny_set, sizes):
    phase = replace(PHASE, n_heads=1)
    context = context_of(with_values(tiny_config, {"sizes": sizes}), tiny_set, phase)
    phase.begin(context)
    part, rows = context.network.parts["frozen_heads"], torch.arange(24)
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(part.weight, std=3.0, generator=generator)
    objective = phase.objective(context, TOOLS)
    objective.see(rows)
    total, _ = objective.loss(context.network, (), (CLUSTER_HEAD,))
    assign = part(context.made[DIRECTIONS])[0]
    losses = {
        each: dcdc_loss(assign[:12], assign[12:24], 0.5, sizes=each).total
        for each in ("equal", "free", (0.2, 0.3, 0.5))
    }
    torch.testing.assert_close(total, losses.pop(sizes))
    assert all(not torch.isclose(total, other) for other in losses.values())


@pytest.mark.parametrize(("rate", "is_learnt"), [(0.02, True), (0.0, False)])
def test_heads_that_start_anywhere_find_the_kinds_and_without_steps_do_not(rate, is_learnt):
    random = np.random.default_rng(0)
    kinds = np.arange(300) % 4
    features = 2.0 * np.eye(4, 32)[kinds] + 0.4 * random.normal(size=(300, 32))
    points = torch.from_numpy(directions(features.astype(np.float32)))
    part = FrozenHeadsPart(3, torch.nn.Linear(32, 4))
    generator = torch.Generator().manual_seed(1)
    torch.nn.init.normal_(part.weight, generator=generator)
    optimiser = torch.optim.SGD(part.parameters(), lr=50 * rate)
    near = (points @ points.T).fill_diagonal_(-1).topk(5).indices
    for _ in range(300):
        rows = torch.randperm(300, generator=generator)[:64]
        partners = near[rows, torch.randint(5, (64,), generator=generator)]
        losses = [
            dcdc_loss(*pair).total
            for pair in zip(part(points[rows]), part(points[partners]), strict=True)
        ]
        optimiser.zero_grad()
        torch.stack(losses).sum().backward()
        optimiser.step()
    best = part(points)[int(torch.stack(losses).argmin())].argmax(1).numpy()
    accuracy = score(kinds, best)["acc"]
    assert accuracy > 0.95 if is_learnt else accuracy < 0.8


def test_features_that_a_checkpoint_does_not_hold_are_made_again(context):
    kept = context.made.pop(DIRECTIONS)
    PHASE.batches(torch.arange(12)[None], context, torch.Generator().manual_seed(0))
    assert torch.equal(context.made[DIRECTIONS], kept)


def test_the_cluster_head_alone_trains():
    assert PHASE.passes(1, (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)) == ((CLUSTER_HEAD,),)


def test_too_many_neighbours_are_refused(tiny_config, tiny_set):
    phase = replace(PHASE, neighbours=tiny_set.n_images)
    with pytest.raises(InputError, match="neighbours each"):
        context_of(tiny_config, tiny_set, phase)
    with pytest.raises(InputError, match="must be at least 1"):
        with_values(tiny_config, {"phases": ("frozen_heads",), "frozen_heads.n_heads": 0})


def test_directions_on_a_device_are_those_on_a_cpu():
    features = np.random.default_rng(0).normal(3, 1, (50, 6)).astype(np.float32)
    features[-1] = features[:-1].mean(axis=0)  # near the mean: a direction all the same
    wanted = directions(features)[:-1]
    found = _directions_of(torch.from_numpy(features.copy())).numpy()[:-1]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert not _directions_of(torch.ones(3, 4)).any()
