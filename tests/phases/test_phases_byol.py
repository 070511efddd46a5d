"""BYOL against the same work spelled out, and where its EMA target begins."""

from copy import deepcopy

import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, moved, some_images

from dcdc.losses import byol_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.byol import Byol
from dcdc.phases.heads import Heads

PHASE = Byol(epochs=1, batch_size=12, momentum=0.75, projection=4)


@pytest.fixture
def context(tiny_config, tiny_set):
    return context_of(tiny_config, tiny_set, PHASE, Heads(epochs=1, batch_size=16))


def shake(network):
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn_like(weight) / 10)


def test_the_network_predicts_what_its_target_makes_of_the_other_copy(context):
    """Each copy in a pass of its own, the target before the step and a little nearer."""
    network, images = context.network, some_images(context)
    torch.manual_seed(0)
    shake(network)
    twin = deepcopy(network)
    objective = PHASE.objective(context, TOOLS)
    (copies,) = copies_of(objective, images)
    perturbed = context.perturbed_copy(2)(images, torch.Generator().manual_seed(3))
    assert torch.equal(copies, perturbed)
    total, terms = objective.loss(network, (copies,), ("byol",))
    assert terms == {"byol": total}
    total.backward()

    part = twin.parts["byol"]
    part.follow(twin.backbone, 0.75)
    views = copies.chunk(2)
    aim = torch.cat([part.target(twin.preprocess(view)) for view in views])
    predicted = torch.cat([part.predictor(part.projection(twin.features(view))) for view in views])
    expected = byol_loss(predicted, aim)
    torch.testing.assert_close(total, expected)
    expected.backward()
    for (name, ours), theirs in zip(network.named_parameters(), twin.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None) == name.startswith("heads."), name
        if ours.grad is not None:
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6, msg=name)
    trained = ("backbone.", "parts.byol.projection.", "parts.byol.predictor.")
    assert all(name.startswith(trained) for name in moved(network))
    assert all(any(name.startswith(each) for name in moved(network)) for each in trained)
    for name, tensor in network.parts["byol"].target.state_dict().items():
        torch.testing.assert_close(tensor, part.target.state_dict()[name], msg=name)


def test_the_target_moves_by_the_momentum(context):
    part, backbone = context.network.parts["byol"], context.network.backbone
    before = {name: tensor.clone() for name, tensor in part.target.state_dict().items()}
    shake(context.network)
    part.follow(backbone, 0.75)
    for name, weight in backbone.named_parameters():
        expected = 0.75 * before[f"network.0.{name}"] + 0.25 * weight
        torch.testing.assert_close(part.target.state_dict()[f"network.0.{name}"], expected)


def test_the_phase_begins_with_a_target_as_the_network_is_then(context):
    part, backbone = context.network.parts["byol"], context.network.backbone
    shake(context.network)
    assert not torch.equal(
        part.target.state_dict()["network.1.0.weight"], part.projection.state_dict()["0.weight"]
    )
    PHASE.begin(context)
    found = part.target.state_dict()
    for number, followed in enumerate((backbone, part.projection)):
        for name, tensor in followed.state_dict().items():
            assert torch.equal(found[f"network.{number}.{name}"], tensor), name


def test_no_head_trains_and_nothing_is_scored():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert {PHASE.passes(number, heads) for number in (1, 2)} == {(("byol",),)}
    assert not PHASE.is_scored


def test_it_tries_its_own_rate_where_the_loss_is_not_finite():
    assert PHASE.remedies("byol") == "try a lower {byol.learning_rate} (now 0.001)"
