"""The step against the same work spelled out, and what separates the two copies."""

import torch

from dcdc.augment import to_float
from dcdc.engine.observer import SilentObserver
from dcdc.losses import dcdc_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve


def training(config, image_set):
    return build_training(resolve(config, image_set), image_set, SilentObserver(), None)


def test_a_step_is_two_passes_a_loss_and_one_update(tiny_config, tiny_set):
    built, twin = training(tiny_config, tiny_set), training(tiny_config, tiny_set)
    indices = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
    step, by_hand = built.trainer.steps[0], twin.trainer.steps[0]
    for part in (step, by_hand):
        part.generator.manual_seed(5)
        part.network.train()
    terms = step(indices, (CLUSTER_HEAD,))

    images = to_float(by_hand.store.batch(indices))
    assign = by_hand.network(images).assign[CLUSTER_HEAD]
    perturbed = by_hand.objective.perturbed_copy(images, by_hand.generator)
    assert len(perturbed) == 16
    loss = dcdc_loss(assign, by_hand.network(perturbed).assign[CLUSTER_HEAD], 0.5)
    loss.total.backward()
    torch.optim.Adam(by_hand.network.parameters(), lr=1e-3, fused=True).step()

    assert terms.keys() == {"loss", "cluster_head/sample_view", "cluster_head/class_view"}
    assert terms["loss"] == loss.total
    assert terms["cluster_head/class_view"] == loss.terms["class_view"]
    for ours, theirs in zip(
        step.network.state_dict().values(), by_hand.network.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_only_the_heads_asked_for_are_trained(tiny_config, tiny_set):
    step = training(tiny_config, tiny_set).trainer.steps[0]
    heads = step.network.heads
    before = {name: head.weight.clone() for name, head in heads.items()}
    step.generator.manual_seed(0)
    step(torch.arange(8), (OVER_CLUSTERING_HEAD,))
    assert torch.equal(heads[CLUSTER_HEAD].weight, before[CLUSTER_HEAD])
    assert not torch.equal(heads[OVER_CLUSTERING_HEAD].weight, before[OVER_CLUSTERING_HEAD])


def test_both_heads_in_one_step_sum_their_losses(tiny_config, tiny_set):
    step = training(tiny_config, tiny_set).trainer.steps[0]
    step.generator.manual_seed(0)
    terms = step(torch.arange(8), (CLUSTER_HEAD, OVER_CLUSTERING_HEAD))
    parts = [term for name, term in terms.items() if name != "loss"]
    assert len(parts) == 4
    torch.testing.assert_close(terms["loss"], torch.stack(parts).sum())


def test_batch_statistics_of_the_two_copies_are_taken_apart(tiny_config, tiny_set):
    """The original's assignments do not change with how hard the other copy is perturbed."""
    seen: list[list[torch.Tensor]] = []
    for noise in (0.0, 0.5):
        built = training(tiny_config, tiny_set)
        step = built.trainer.steps[0]
        step.objective.perturbed_copy.noise = noise
        norm = step.network.backbone.layers[1]
        means: list[torch.Tensor] = []
        plain = torch.nn.BatchNorm2d(32)  # the layer's own adds a ReLU
        norm.register_forward_pre_hook(
            lambda _, given, means=means, plain=plain: means.append(plain(given[0]).detach())
        )
        step.generator.manual_seed(0)
        step.network.train()
        step(torch.arange(8), (CLUSTER_HEAD,))
        seen.append(means)
    (original, perturbed), (original_too, perturbed_too) = seen
    assert torch.equal(original, original_too)
    assert not torch.equal(perturbed, perturbed_too)
    # each copy is normalised by its own statistics: mean 0 and deviation 1 per channel
    for copy in (original, perturbed, perturbed_too):
        torch.testing.assert_close(copy.mean((0, 2, 3)), torch.zeros(32), atol=1e-4, rtol=0)
