"""Contrast of images and of clusters, against the same work spelled out."""

import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, moved, some_images

from dcdc.config import with_values
from dcdc.errors import InputError
from dcdc.losses import balance_loss, column_contrast_loss, nt_xent_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.contrastive_clustering import ContrastiveClustering

PHASE = ContrastiveClustering(
    epochs=1, batch_size=12, temperature=0.3, cluster_temperature=0.7, projection=4
)


@pytest.fixture
def context(tiny_config, tiny_set):
    return context_of(tiny_config, tiny_set, PHASE)


def test_rows_are_compared_by_projections_and_columns_by_assignments(context):
    network, images = context.network, some_images(context)
    objective = PHASE.objective(context, TOOLS)
    perturbed = context.perturbed_copy(2)(images, torch.Generator().manual_seed(3))
    (copies,) = copies_of(objective, images)
    assert torch.equal(copies, perturbed)
    total, terms = objective.loss(network, (copies,), (CLUSTER_HEAD,))
    output = network(perturbed)
    projected = network.parts["contrastive_clustering"](output.features)
    first, second = output.assign[CLUSTER_HEAD].split(12)
    rows = nt_xent_loss(*projected.split(12), temperature=0.3)
    columns = column_contrast_loss(first, second, 0.7)
    balance = balance_loss(first) + balance_loss(second)
    torch.testing.assert_close(total, rows + columns + balance)
    assert list(terms) == ["images", "clusters", "balance"]
    total.backward()
    for part in ("parts.contrastive_clustering.", "backbone.", f"heads.{CLUSTER_HEAD}."):
        assert any(name.startswith(part) for name in moved(network)), part


def test_the_cluster_head_alone_trains():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert PHASE.passes(1, heads) == ((CLUSTER_HEAD,),)
    assert PHASE.is_scored


@pytest.mark.parametrize("initialisation", ["random", "spherical-k-means"])
def test_the_cluster_head_starts_as_it_is_or_from_k_means(tiny_config, tiny_set, initialisation):
    phase = ContrastiveClustering(epochs=2, batch_size=12, initialisation=initialisation)
    context = context_of(tiny_config, tiny_set, phase)
    head = context.network.heads[CLUSTER_HEAD]
    before = head.weight.detach().clone()
    phase.begin_epoch(context, 2)
    assert torch.equal(head.weight, before)
    phase.begin_epoch(context, 1)
    assert torch.equal(head.weight, before) == (initialisation == "random")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("contrastive_clustering.temperature", 0, "must be above 0"),
        ("contrastive_clustering.cluster_temperature", 0, "must be above 0"),
        ("contrastive_clustering.balance_weight", -1, "must be at least 0"),
        ("contrastive_clustering.projection", 1, "must be at least 2"),
        ("network.sub_heads", 2, "must be 1 where contrastive_clustering.epochs is above 0"),
    ],
)
def test_wrong_settings_are_refused(tiny_config, key, value, problem):
    phases = {"phases": ("contrastive_clustering",), "contrastive_clustering.epochs": 2}
    with pytest.raises(InputError, match=problem):
        with_values(tiny_config, phases | {key: value})


def test_it_tries_its_own_rate_and_temperature_where_the_loss_is_not_finite():
    assert PHASE.remedies("contrastive_clustering") == (
        "try a lower {contrastive_clustering.learning_rate} (now 0.0003) or a higher "
        "{contrastive_clustering.temperature}"
    )
