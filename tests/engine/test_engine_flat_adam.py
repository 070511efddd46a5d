"""Against torch's own Adam, step by step; the kernel through Triton's interpreter."""

import pytest
import torch

from dcdc.config import with_values
from dcdc.engine.flat_adam import FlatAdam
from dcdc.engine.observer import SilentObserver
from dcdc.engine.optimiser import Adam
from dcdc.networks import (
    ClusteringNetwork,
    Convolution,
    WeightGradientStream,
    weight_gradients_on,
)
from dcdc.networks.resnet import ResNet
from dcdc.phases.byol import Byol
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import heads_of
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve

HEADS = ("cluster_head", "over_clustering_head")


def network(phases=()):
    torch.manual_seed(0)
    built = ClusteringNetwork(
        ResNet(3, (1, 1)),  # as the registered ones, but small
        in_channels=3,
        n_clusters=3,
        n_over_clusters=5,
        mean=[0.5],
        std=[0.5],
    )
    for phase in phases:
        built.parts[phase.kind] = phase.part(built.backbone, built.n_features)
    return built.to(memory_format=torch.channels_last)


def train(built, optimiser, n_steps=4):
    """Gradients are drawn, not computed: tiny ones would turn rounding into large steps."""
    torch.manual_seed(1)
    for number in range(n_steps):
        at_rest = f"heads.{HEADS[number % 2]}"  # heads in turn
        for name, parameter in built.named_parameters():
            parameter.grad = torch.randn_like(parameter)
            if name.startswith(at_rest):
                parameter.grad = None
        optimiser.step()


def test_without_twins_it_is_adam_and_a_head_at_rest_stays():
    ours, theirs = network(), network()
    train(ours, FlatAdam(ours, torch.tensor(1e-2), half=False))
    train(theirs, torch.optim.Adam(theirs.parameters(), lr=1e-2))
    for (name, left), right in zip(
        ours.state_dict().items(), theirs.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6, msg=name)


APART = [*(f"heads.{head}." for head in HEADS), "parts.contrast.", "parts.byol."]


@pytest.mark.parametrize("trained", APART)
def test_heads_and_parts_rest_on_their_own_while_the_backbone_moves(trained):
    """And nothing of an EMA target is the optimiser's."""
    built = network([Contrast(projection=4), Byol(projection=4)])
    target = built.parts["byol"].target
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    optimiser = FlatAdam(built, torch.tensor(1e-2), half=False)
    start = {name: weight.detach().clone() for name, weight in built.named_parameters()}
    for name, weight in built.named_parameters():
        if name.startswith(("backbone.", trained)):
            weight.grad = torch.ones_like(weight)
    optimiser.step()
    moved = {
        name for name, weight in built.named_parameters() if not torch.equal(weight, start[name])
    }
    assert moved == {name for name in start if name.startswith(("backbone.", trained))}
    assert {"backbone.stem.1.weight", "backbone.stem.1.bias"} <= moved  # a norm
    counted = {
        name
        for name, weight in built.named_parameters()
        if optimiser.state[weight]["step"].item() == 1
    }
    assert counted == moved
    for name, tensor in target.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_weights_of_no_use_in_a_backbone_do_not_hold_up_the_others():
    """As a classifier that somebody left in a backbone: no gradient ever reaches it."""
    networks = []
    for kind in (FlatAdam, torch.optim.Adam):
        built = network()
        built.backbone.unused = torch.nn.Linear(4, 4)
        torch.nn.init.ones_(built.backbone.unused.weight)
        torch.nn.init.ones_(built.backbone.unused.bias)
        rate = torch.tensor(1e-2)
        chosen = {"half": False} if kind is FlatAdam else {}
        parameters = built if kind is FlatAdam else built.parameters()
        optimiser = kind(parameters, lr=rate, **chosen)
        start = built.backbone.stem[1].weight.detach().clone()
        torch.manual_seed(1)
        for _ in range(3):
            for name, weight in built.named_parameters():
                weight.grad = None if ".unused." in name else torch.randn_like(weight)
            optimiser.step()
        assert not torch.equal(built.backbone.stem[1].weight, start)
        networks.append(built)
    for (name, left), right in zip(
        networks[0].named_parameters(), networks[1].parameters(), strict=True
    ):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6, msg=name)


def test_convolutions_of_a_part_are_its_own():
    """They train with their part, and in full precision."""
    built = network()
    built.parts["outside"] = Convolution(3, 4, 3)
    optimiser = FlatAdam(built, torch.tensor(1e-2))
    held = [weight for span in optimiser.spans for weight in span.parameters]
    assert len(held) == len(list(built.parameters()))
    assert {id(weight) for weight in held} == {id(weight) for weight in built.parameters()}
    assert built.parts["outside"].twin is None


def test_weights_keep_their_values_and_layout_and_share_one_buffer():
    plain, flat = network(), network()
    optimiser = FlatAdam(flat, torch.tensor(1e-3))
    for left, right in zip(plain.parameters(), flat.parameters(), strict=True):
        assert torch.equal(left, right)
        assert left.stride() == right.stride()
    convolutions = optimiser.spans[0]
    assert convolutions.weight.numel() == sum(p.numel() for p in convolutions.parameters)
    assert {p.untyped_storage().data_ptr() for p in convolutions.parameters} == {
        convolutions.weight.untyped_storage().data_ptr()
    }


def test_twins_follow_the_weights_through_steps_and_loading():
    built = network()
    optimiser = FlatAdam(built, torch.tensor(1e-2))
    convolutions = optimiser.spans[0]
    start = convolutions.weight.clone()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        convolutions.gradient.normal_()
        optimiser.step()
    assert not torch.equal(convolutions.weight, start)
    assert torch.equal(convolutions.twin, convolutions.weight.bfloat16())
    built.load_state_dict(network().state_dict())
    assert torch.equal(convolutions.weight, start)
    assert torch.equal(convolutions.twin, start.bfloat16())


def test_the_state_is_saved_and_loaded_into_the_same_place():
    built, other = network(), network()
    optimiser = FlatAdam(built, torch.tensor(1e-3), half=False)
    train(built, optimiser, 3)
    saved = {name: value.clone() for name, value in optimiser.named_state().items()}
    fresh = FlatAdam(other, torch.tensor(1e-3), half=False)
    places = [span.first.data_ptr() for span in fresh.spans]
    fresh.load_named_state(saved)
    other.load_state_dict(built.state_dict())
    assert places == [span.first.data_ptr() for span in fresh.spans]
    train(built, optimiser, 2)
    train(other, fresh, 2)
    for left, right in zip(built.parameters(), other.parameters(), strict=True):
        assert torch.equal(left, right)


def test_gradients_reach_the_twins_place_and_add_up_over_passes():
    built = network()
    FlatAdam(built, torch.tensor(1e-3))
    layer = built.backbone.stages[0].conv1
    first, second = torch.randn(2, 2, 64, 5, 5).bfloat16()
    twin = layer.twin.clone().requires_grad_()
    for images in (first, second):
        torch.conv2d(images, twin, padding=1).sum().backward()
    for _ in range(2):  # the second step begins anew
        with weight_gradients_on(layer, WeightGradientStream()):
            (layer(first).sum() + layer(second).sum()).backward()
        assert layer.weight.grad is None
        torch.testing.assert_close(layer.twin_gradient, twin.grad, rtol=2e-2, atol=2e-2)


KERNEL = """
import torch
from dcdc.engine.flat_adam import _span, update_eagerly
from dcdc.engine.flat_adam_kernel import launch
from dcdc.engine.flat_adam import BETAS, EPS
torch.manual_seed(0)
for twins in (False, True):
    spans = []
    for _ in range(2):
        torch.manual_seed(1)
        weights = [torch.nn.Parameter(torch.randn(shape)) for shape in ((5, 7, 3, 3), (2100,))]
        spans.append(_span(weights, twins))
    for step in range(1, 4):
        gradient = torch.randn_like(spans[0].gradient)
        corrections = 1 - torch.tensor(BETAS) ** step
        for span in spans:
            span.gradient.copy_(gradient)
        launch(spans[0], torch.tensor(0.01), corrections, BETAS, EPS)
        update_eagerly(spans[1], torch.tensor(0.01), corrections)
        for name in ("weight", "first", "second"):
            ours, theirs = (getattr(span, name) for span in spans)
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
        if twins:
            torch.testing.assert_close(spans[0].twin, spans[1].twin, rtol=1e-2, atol=1e-2)
print("agrees")
"""


def test_the_kernel_does_what_the_eager_update_does(interpreted):
    assert interpreted(KERNEL) == "agrees\n"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_run_with_twins_follows_one_without(tiny_config, tiny_set):
    values = {"network.backbone": "resnet18", "heads.epochs": 8}
    values |= {"train.device": "cuda", "train.precision": "bfloat16"}
    config = with_values(tiny_config, values)
    losses = []
    for plain in (False, True):
        trainer = build_training(
            resolve(config, tiny_set), tiny_set, SilentObserver(), None
        ).trainer
        step = trainer.steps[0].eager
        assert isinstance(step.optimiser, FlatAdam)
        if plain:
            for layer in trainer.network.modules():
                if hasattr(layer, "twin"):
                    layer.twin = layer.twin_gradient = None
            rate = torch.tensor(heads_of(config).learning_rate, device="cuda")
            optimiser = Adam(trainer.network.parameters(), rate, fused=True)
            step.optimiser = trainer.optimiser = optimiser
        trainer.train()
        losses.append([line["loss"] for line in trainer.history])
    assert losses[0] == pytest.approx(losses[1], abs=0.15)
