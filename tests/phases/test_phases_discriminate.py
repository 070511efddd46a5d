"""Cluster discrimination: what its steps do, what it remembers, and that it learns."""

import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, moved
from torch.nn import functional as F

from dcdc.config import with_values
from dcdc.errors import InputError
from dcdc.losses import discrimination_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.discriminate import LABELS, Discriminate
from dcdc.phases.heads import Heads

PHASE = Discriminate(epochs=4, batch_size=12, n_sets=2, warmup_epochs=1)
ROWS = torch.arange(12)


@pytest.fixture
def context(tiny_config, tiny_set):
    context = context_of(tiny_config, tiny_set, PHASE, Heads(epochs=1, batch_size=16))
    PHASE.begin(context)
    PHASE.begin_epoch(context, 1)
    return context


def one_step(context, rows=ROWS):
    objective = PHASE.objective(context, TOOLS)
    objective.see(rows)
    (copies,) = copies_of(objective, context.store.batch(rows))
    return objective.loss(context.network, (copies,), ("discriminate",)), copies


def test_a_set_of_centres_has_as_many_as_clusters_the_next_twice_as_many(context):
    part = context.network.parts["discriminate"]
    assert part.is_centre.sum(1).tolist() == [3, 6]
    torch.testing.assert_close(part.centres.norm(dim=2), torch.ones(2, 6))


def test_copies_find_the_centres_as_they_were_when_the_epoch_began(context):
    network, part = context.network, context.network.parts["discriminate"]
    context.state[LABELS][ROWS] = torch.tensor([[1, 5]])
    part.centres.copy_(F.normalize(torch.randn(2, 6, 128), dim=2))  # moved on since
    centres = part.centres.clone()
    (total, terms), copies = one_step(context)
    total.backward()
    projected = F.normalize(part.projection(network.features(copies)), dim=1)
    cosines = torch.einsum("bd,skd->bsk", projected, part.centres_before)
    labels = torch.tensor([[1, 5]]).expand(12, 2)
    expected = discrimination_loss(cosines, labels, part.is_centre, 0.05, 0.2)
    torch.testing.assert_close(total, expected, rtol=1e-4, atol=1e-5)
    assert terms["discriminate"] is total
    assert not torch.equal(part.centres, centres)
    trained = ("backbone.", "parts.discriminate.projection.")
    assert all(name.startswith(trained) for name in moved(network))
    assert all(any(name.startswith(each) for name in moved(network)) for each in trained)


def test_labels_are_kept_for_the_images_of_the_batch_alone(context):
    one_step(context)
    labels = context.state[LABELS]
    assert (labels[ROWS] >= 0).all()
    assert (labels[len(ROWS) :] == -1).all()
    assert labels.shape == (len(context.store), 2)


def test_no_cluster_stays_empty(context):
    """All copies project to nearly one place, so that without duals one centre would have all."""
    part = context.network.parts["discriminate"]
    drawn = torch.Generator().manual_seed(0)
    towards = part.centres[0, 0] + 0.05 * torch.randn(24, 128, generator=drawn)
    seen = torch.zeros(3)
    for step in range(400):
        labels = part.learn(F.normalize(towards, dim=1), temperature=0.05, fewest=0.9)
        if step == 0:
            assert (labels[:, 0] == labels[0, 0]).all()
        if step >= 200:
            seen += torch.bincount(labels[:, 0], minlength=3)
    assert (seen / seen.sum() > 0.9 / 3 - 0.05).all()


def test_the_rate_rises_then_falls():
    rates = [PHASE.rate_factor(epoch / 2) for epoch in range(9)]
    assert rates[:3] == [0, 0.5, 1]
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] == pytest.approx(0)
    share = Discriminate(epochs=4, warmup_epochs=0.25)
    assert [share.rate_factor(epoch / 2) for epoch in range(9)] == rates
    assert Discriminate(epochs=4, warmup_epochs=0).rate_factor(0) == 1


def test_no_head_trains_and_nothing_is_scored():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert PHASE.passes(1, heads) == (("discriminate",),)
    assert not PHASE.is_scored


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("n_sets", 0, "must be at least 1"),
        ("temperature", 0, "must be above 0"),
        ("weight_decay", -1, "must be at least 0"),
        ("warmup_epochs", 4, "must be below the 4 epochs"),
        ("warmup_epochs", -1, "must be at least 0"),
    ],
)
def test_wrong_settings_are_refused(tiny_config, key, value, problem):
    phases = {"phases": ("discriminate", "heads"), "discriminate.epochs": 4}
    given = {"discriminate.warmup_epochs": 1, f"discriminate.{key}": value}
    with pytest.raises(InputError, match=problem):
        with_values(tiny_config, phases | given)
