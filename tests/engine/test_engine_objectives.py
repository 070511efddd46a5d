"""Each objective against the same work spelled out."""

from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from dcdc.assembly import build_training
from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.config_for_images import resolve
from dcdc.engine.objectives import (
    DcdcObjective,
    InstanceObjective,
    PredictionObjective,
    SelfLabelObjective,
    one_pass,
    two_passes,
)
from dcdc.engine.observer import SilentObserver
from dcdc.engine.plan import HEADS
from dcdc.losses import dcdc_loss, instance_loss, prediction_loss, self_label_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD, PROJECTION, ClusteringNetwork


@pytest.fixture
def network():
    torch.manual_seed(0)
    return ClusteringNetwork(
        trunk="small",
        in_channels=1,
        n_clusters=3,
        n_over_clusters=5,
        mean=[0.5],
        std=[0.5],
        n_projected=4,
    )


@pytest.fixture
def images(tiny_set):
    return torch.tensor(tiny_set.images[:12]).permute(0, 3, 1, 2)


def original_copy():
    return OriginalCopy(8, 10)


def perturbed_copy(n_repeats=2):
    return PerturbedCopy(n_repeats=n_repeats, shift=0.1, noise=0.1, flip=0.5)


def copies_of(objective, images, seed=3):
    return objective.copies(images, objective.draw(images, torch.Generator().manual_seed(seed)))


def moved(network):
    """Names of what got a gradient that is not zero."""
    return {
        name
        for name, parameter in network.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().sum() > 0
    }


def dcdc_objective(**changes):
    return DcdcObjective(
        original_copy(), perturbed_copy(), loss=dcdc_loss, autocast=nullcontext, **changes
    )


def self_label_objective(threshold=0.3, autocast=nullcontext):
    return SelfLabelObjective(
        original_copy(), perturbed_copy(1), threshold=threshold, autocast=autocast
    )


def instance_objective(n_copies=2):
    return InstanceObjective(perturbed_copy(n_copies), temperature=0.3, autocast=nullcontext)


def test_dcdc_is_the_loss_of_each_head_on_both_copies(network, images):
    objective = dcdc_objective()
    generator = torch.Generator().manual_seed(3)
    original = original_copy()(images, generator)
    perturbed = perturbed_copy()(images, generator)
    copies = copies_of(objective, images)
    assert torch.equal(copies[0], original)
    assert torch.equal(copies[1], perturbed)
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    total, terms = objective.loss(network, copies, heads)
    wanted = {
        head: dcdc_loss(
            network(original, heads).assign[head], network(perturbed, heads).assign[head]
        )
        for head in heads
    }
    assert terms == {
        f"{head}/{name}": term for head in heads for name, term in wanted[head].terms.items()
    }
    assert total.item() == pytest.approx(sum(loss.total.item() for loss in wanted.values()))


def test_with_partners_the_second_half_is_perturbed_and_the_first_half_is_not(images):
    objective = dcdc_objective(partners=True)
    generator = torch.Generator().manual_seed(3)
    original = original_copy()(images[:6], generator)
    perturbed = perturbed_copy()(images[6:], generator)
    copies = copies_of(objective, images)
    assert (len(copies[0]), len(copies[1])) == (6, 12)
    assert torch.equal(copies[0], original)
    assert torch.equal(copies[1], perturbed)


@pytest.mark.parametrize("n_copies", [2, 3])
def test_instance_contrasts_the_copies_by_their_projections(network, images, n_copies):
    objective = instance_objective(n_copies)
    perturbed = perturbed_copy(n_copies)(images, torch.Generator().manual_seed(3))
    (copies,) = copies_of(objective, images)
    assert torch.equal(copies, perturbed)
    total, terms = objective.loss(network, (copies,), (PROJECTION,))
    projected = network.project(perturbed)
    assert total == instance_loss(*projected.split(12), temperature=0.3)
    assert terms == {"instance": total}
    total.backward()
    assert any(name.startswith("projection.") for name in moved(network))
    assert any(name.startswith("trunk.") for name in moved(network))
    assert not any(name.startswith("heads.") for name in moved(network))


def test_one_copy_has_no_other_to_find():
    with pytest.raises(AssertionError):
        instance_objective(n_copies=1)


@pytest.fixture
def predicting():
    torch.manual_seed(0)
    built = ClusteringNetwork(
        trunk="small",
        in_channels=1,
        n_clusters=3,
        mean=[0.5],
        std=[0.5],
        n_projected=4,
        predicts=True,
    )
    built.keep_slow_copy()
    return built


def test_prediction_is_of_what_the_slow_copy_makes_of_the_other_copy(predicting, images):
    """Each copy in a pass of its own, the slow copy before the step and a little nearer."""
    network, momentum = predicting, 0.75
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn_like(weight) / 10)
    twin = deepcopy(network)
    objective = PredictionObjective(perturbed_copy(), momentum=momentum, autocast=nullcontext)
    (copies,) = copies_of(objective, images)
    total, terms = objective.loss(network, (copies,), (PROJECTION,))
    assert terms == {"instance": total}
    total.backward()

    twin.follow_slowly(momentum)
    aim = torch.cat([twin.project_slowly(part) for part in copies.chunk(2)])
    predicted = torch.cat([twin.predict(part) for part in copies.chunk(2)])
    expected = prediction_loss(predicted, aim)
    torch.testing.assert_close(total, expected)
    expected.backward()
    for (name, ours), theirs in zip(network.named_parameters(), twin.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None) == name.startswith("heads."), name
        if ours.grad is not None:
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6, msg=name)
    assert {name.partition(".")[0] for name in moved(network)} == {
        "trunk",
        "projection",
        "predictor",
    }
    for name, tensor in network.slow_copy.state_dict().items():
        torch.testing.assert_close(tensor, twin.slow_copy.state_dict()[name], msg=name)


def test_self_labels_come_from_the_original_copy_and_teach_the_perturbed_one(network, images):
    objective = self_label_objective(threshold=0.4)
    copies = copies_of(objective, images)
    total, terms = objective.loss(network, copies, (CLUSTER_HEAD,))
    assign, assign_perturbed = (network(copy).assign[CLUSTER_HEAD] for copy in copies)
    wanted, n_sure = self_label_loss(assign, assign_perturbed, 0.4)
    assert 0 < n_sure < 12
    torch.testing.assert_close(total, wanted)
    assert terms.keys() == {"self_label", "sure"}
    assert terms["self_label"] == total
    assert terms["sure"].item() == pytest.approx(n_sure.item() / 12)
    total.backward()
    ours = {name: parameter.grad for name, parameter in network.named_parameters()}
    network.zero_grad(set_to_none=True)
    with torch.no_grad():
        labels = network(copies[0]).assign[CLUSTER_HEAD]
    self_label_loss(labels, network(copies[1]).assign[CLUSTER_HEAD], 0.4)[0].backward()
    for name, parameter in network.named_parameters():
        if parameter.grad is None:
            assert ours[name] is None
        else:
            torch.testing.assert_close(ours[name], parameter.grad, msg=name)
    assert {name for name in ours if ours[name] is not None and name.startswith("heads.")} == {
        f"heads.{CLUSTER_HEAD}.weight",
        f"heads.{CLUSTER_HEAD}.bias",
    }


def test_the_original_pass_of_self_labels_records_no_gradient(network, images):
    """And shares no autocast with the other: its cast weights would be used again there."""
    entered, passes = [], []

    @contextmanager
    def autocast():
        entered.append(len(passes))
        yield

    network.trunk.register_forward_hook(
        lambda *call: passes.append((call[2].requires_grad, len(entered)))
    )
    objective = self_label_objective(autocast=autocast)
    objective.loss(network, copies_of(objective, images), (CLUSTER_HEAD,))
    assert passes == [(False, 1), (True, 2)]


def test_the_copies_are_applied_by_what_the_caller_hands_back(images):
    def applied(copy):
        return lambda images, draw: copy.apply(images, draw) * 0

    for objective in (
        dcdc_objective(applied=applied),
        InstanceObjective(perturbed_copy(), temperature=0.3, autocast=nullcontext, applied=applied),
        SelfLabelObjective(
            original_copy(),
            perturbed_copy(1),
            threshold=0.3,
            autocast=nullcontext,
            applied=applied,
        ),
    ):
        assert all((copy == 0).all() for copy in copies_of(objective, images))


@pytest.mark.parametrize("trunk", ["small", pytest.param("resnet18", marks=pytest.mark.slow)])
def test_one_pass_means_what_two_passes_mean(tiny_config, tiny_set, trunk):
    config = replace(tiny_config, network=replace(tiny_config.network, trunk=trunk))
    trainers = [
        build_training(resolve(config, tiny_set), tiny_set, SilentObserver(), None).trainer
        for _ in range(2)
    ]
    terms = []
    for trainer, passes in zip(trainers, (two_passes, one_pass), strict=True):
        objective = trainer.steps[HEADS].objective
        objective.passes = passes
        trainer.network.double()
        objective.copies = doubled(objective.copies)
        trainer.generator.manual_seed(0)
        for _ in range(3):
            found = trainer.steps[HEADS](torch.arange(16), (CLUSTER_HEAD, OVER_CLUSTERING_HEAD))
        terms.append(found)
    for name in terms[0]:
        torch.testing.assert_close(terms[0][name], terms[1][name], rtol=1e-9, atol=1e-12)
    two, one = (trainer.network.state_dict() for trainer in trainers)
    for name in two:
        torch.testing.assert_close(one[name], two[name], rtol=1e-6, atol=1e-9, msg=name)


def doubled(apply):
    return lambda *arguments: tuple(copy.double() for copy in apply(*arguments))
