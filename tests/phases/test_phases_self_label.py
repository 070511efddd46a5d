"""Self-labels against the same work spelled out."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, some_images

from dcdc.engine.objectives import StepTools
from dcdc.losses import self_label_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel

PHASE = SelfLabel(epochs=1, threshold=0.5)


@pytest.fixture
def context(tiny_config, tiny_set):
    return context_of(tiny_config, tiny_set, Heads(epochs=1, batch_size=16), PHASE)


def test_labels_come_from_the_original_copy_and_teach_the_perturbed_one(context):
    network, images = context.network, some_images(context)
    with torch.no_grad():  # some answers are sure, and not all
        network.heads[CLUSTER_HEAD].weight.normal_(0, 0.1, generator=torch.manual_seed(0))
    objective = PHASE.objective(context, TOOLS)
    copies = copies_of(objective, images)
    generator = torch.Generator().manual_seed(3)
    assert torch.equal(copies[0], context.model.original_copy(images, generator))
    assert torch.equal(copies[1], context.perturbed_copy(1)(images, generator))
    total, terms = objective.loss(network, copies, (CLUSTER_HEAD,))
    assign, assign_perturbed = (network(copy).assign[CLUSTER_HEAD] for copy in copies)
    wanted, n_sure = self_label_loss(assign, assign_perturbed, 0.5)
    assert 0 < n_sure < 12, n_sure
    torch.testing.assert_close(total, wanted)
    assert terms.keys() == {"self_label", "sure"}
    assert terms["self_label"] == total
    assert terms["sure"].item() == pytest.approx(n_sure.item() / 12)
    total.backward()
    ours = {name: parameter.grad for name, parameter in network.named_parameters()}
    network.zero_grad(set_to_none=True)
    with torch.no_grad():
        labels = network(copies[0]).assign[CLUSTER_HEAD]
    self_label_loss(labels, network(copies[1]).assign[CLUSTER_HEAD], 0.5)[0].backward()
    for name, parameter in network.named_parameters():
        if parameter.grad is None:
            assert ours[name] is None
        else:
            torch.testing.assert_close(ours[name], parameter.grad, msg=name)
    assert {name for name in ours if ours[name] is not None and name.startswith("heads.")} == {
        f"heads.{CLUSTER_HEAD}.weight",
        f"heads.{CLUSTER_HEAD}.bias",
    }


def test_a_strong_copy_may_learn_the_label(context):
    images = some_images(context)
    copies = copies_of(replace(PHASE, copies="strong").objective(context, TOOLS), images)
    generator = torch.Generator().manual_seed(3)
    assert torch.equal(copies[0], context.model.original_copy(images, generator))
    strong = context.strong_copy(1)
    assert torch.equal(copies[1], strong.apply(images, strong.draw(images, generator)))


def test_the_original_pass_records_no_gradient(context):
    """And shares no autocast with the other: its cast weights would be used again there."""
    entered, passes = [], []

    @contextmanager
    def autocast():
        entered.append(len(passes))
        yield

    context.network.backbone.register_forward_hook(
        lambda *call: passes.append((call[2].requires_grad, len(entered)))
    )
    objective = PHASE.objective(context, StepTools(autocast))
    copies = copies_of(objective, some_images(context))
    objective.loss(context.network, copies, (CLUSTER_HEAD,))
    assert passes == [(False, 1), (True, 2)]


def test_the_cluster_head_trains_alone_and_is_scored():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert {PHASE.passes(number, heads) for number in (1, 2)} == {((CLUSTER_HEAD,),)}
    assert PHASE.is_scored


def test_it_tries_its_own_rate_where_the_loss_is_not_finite():
    assert PHASE.remedies("self_label") == "try a lower {self_label.learning_rate} (now 0.0001)"
