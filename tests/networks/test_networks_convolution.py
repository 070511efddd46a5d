import os
import subprocess
import sys

import pytest
import torch

from dcdc.engine.optimiser import Adam, Sgd
from dcdc.networks import convolution
from dcdc.networks.convolution import Convolution, WeightGradientStream, weight_gradients_on


def gradients(layers, images, stream=None):
    for layer in layers:
        layer.zero_grad(set_to_none=True)
    images = images.clone().requires_grad_()

    def run():
        out = images
        for layer in layers:
            out = layer(out).relu()
        out.square().sum().backward()
        return out.detach()

    if stream is None:
        out = run()
    else:
        with weight_gradients_on(torch.nn.ModuleList(layers), stream):
            out = run()
    return [out, images.grad, *(layer.weight.grad for layer in layers)]


@pytest.fixture
def layers():
    torch.manual_seed(0)
    return [Convolution(3, 8, 3), Convolution(8, 8, 3, stride=2), Convolution(8, 4, 1)]


def test_gradients_are_those_of_a_plain_convolution(layers):
    images = torch.randn(5, 3, 9, 9)
    for ours, plain in zip(
        gradients(layers, images, WeightGradientStream()), gradients(layers, images), strict=True
    ):
        assert torch.equal(ours, plain)


def test_in_half_precision_weights_and_gradients_are_turned_as_layer_by_layer(layers):
    images = torch.randn(5, 3, 9, 9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = gradients(layers, images, WeightGradientStream())
        wanted = gradients(layers, images)
    for ours, plain in zip(found, wanted, strict=True):
        assert ours.dtype == plain.dtype
        assert torch.equal(ours, plain)


def test_a_weight_that_changed_is_turned_again(layers):
    stream, images = WeightGradientStream(), torch.randn(5, 3, 9, 9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        gradients(layers, images, stream)
        with torch.no_grad():
            layers[1].weight.mul_(2)
        found, wanted = gradients(layers, images, stream), gradients(layers, images)
    assert torch.equal(found[0], wanted[0])


def test_a_layer_used_twice_sums_its_gradients():
    torch.manual_seed(0)
    layer = Convolution(4, 4, 3)
    images = torch.randn(2, 4, 6, 6)
    both = [layer, layer]
    torch.testing.assert_close(
        gradients(both, images, WeightGradientStream())[2], gradients(both, images)[2]
    )


@pytest.mark.parametrize("at_once", [1, 300, 10_000])
@pytest.mark.parametrize("twice", [False, True])
def test_weights_that_are_updated_early_end_as_those_that_wait(monkeypatch, at_once, twice):
    """After a step, and after another that reads what the first has written."""
    monkeypatch.setattr(convolution, "_UPDATED_AT_ONCE", at_once)

    def trained(early):
        torch.manual_seed(0)
        layers = [Convolution(3, 8, 3), Convolution(8, 8, 3), Convolution(8, 4, 1)]
        if twice:
            layers.insert(1, layers[1])
        optimiser = Adam([layer.weight for layer in dict.fromkeys(layers)], 0.01)
        parts = []

        def update(weights):
            parts.append(len(weights))
            optimiser.step_early(weights)

        for _ in range(2):
            optimiser.zero_grad()
            out = torch.randn(5, 3, 9, 9)
            with (
                torch.autocast("cpu", dtype=torch.bfloat16),
                weight_gradients_on(
                    torch.nn.ModuleList(layers), WeightGradientStream(), update if early else None
                ),
            ):
                for layer in layers:
                    out = layer(out).relu()
                out.square().sum().backward()
            optimiser.step()
        return [weight.detach() for weight in optimiser.parameters], parts

    early, parts = trained(early=True)
    late, _ = trained(early=False)
    assert all(map(torch.equal, early, late))
    assert parts == {1: [1, 1, 1] * 2, 300: [2] * 2, 10_000: []}[at_once]


def test_in_full_precision_no_weight_is_updated_early(monkeypatch, layers):
    """The gradient of the layer's input still reads it."""
    monkeypatch.setattr(convolution, "_UPDATED_AT_ONCE", 1)
    with weight_gradients_on(
        torch.nn.ModuleList(layers), WeightGradientStream(), lambda _: pytest.fail("too early")
    ):
        layers[0](torch.randn(2, 3, 8, 8)).sum().backward()
    assert layers[0].weight.grad is not None


def test_outside_the_block_and_without_gradients_it_is_plain(layers):
    with (
        pytest.raises(ZeroDivisionError),
        weight_gradients_on(layers[0], WeightGradientStream()),
    ):
        assert layers[0].gradient_stream is not None
        raise ZeroDivisionError
    assert layers[0].gradient_stream is None
    with torch.no_grad(), weight_gradients_on(layers[0], WeightGradientStream()):
        assert layers[0](torch.randn(1, 3, 8, 8)).grad_fn is None


def test_an_input_that_needs_no_gradient_gets_none(layers):
    images = torch.randn(2, 3, 8, 8)
    with weight_gradients_on(layers[0], WeightGradientStream()):
        layers[0](images).sum().backward()
    assert layers[0].weight.grad is not None


NARROW_AT_A_STRIDE = """
from contextlib import nullcontext
import torch
from dcdc.networks.convolution import WeightGradientStream, Convolution, weight_gradients_on

torch.set_num_threads(1)
for channels in (4, 12):
    for stream in (None, WeightGradientStream()):
        layer = Convolution(channels, 16, 1, stride=2)
        images = torch.randn(32, channels, 64, 64).to(memory_format=torch.channels_last)
        for _ in range(3):
            with weight_gradients_on(layer, stream) if stream else nullcontext():
                layer(images).square().sum().backward()
        seen = images[:, :, ::2, ::2].permute(1, 0, 2, 3).flatten(1).double()
        weight = layer.weight.detach().flatten(1).double()
        wanted = 3 * 2 * weight @ seen @ seen.T
        torch.testing.assert_close(layer.weight.grad.flatten(1).double(), wanted, rtol=1e-3, atol=1)
"""
"""The sums are of some 32,768 products a weight; torch's own layer writes past its memory here."""


@pytest.mark.parametrize("instructions", ["ALL", "AVX2"])
def test_few_channels_with_the_channels_last_do_not_end_the_process(instructions):
    finished = subprocess.run(
        [sys.executable, "-c", NARROW_AT_A_STRIDE],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": instructions},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("stream", [None, WeightGradientStream()])
def test_few_channels_at_a_stride_have_the_gradients_of_the_channels_first(stride, stream):
    torch.manual_seed(0)
    layer = Convolution(4, 8, 1, stride)
    plain = torch.nn.Conv2d(4, 8, 1, stride, bias=False)
    plain.load_state_dict(layer.state_dict())
    images = torch.randn(3, 4, 7, 8)
    wanted = gradients([plain], images)
    found = gradients([layer], images.contiguous(memory_format=torch.channels_last), stream)
    torch.testing.assert_close(found, wanted)


def test_ordinary_widths_keep_the_stride_of_their_convolutions():
    """The way round costs a copy."""
    images = torch.randn(2, 16, 8, 8).contiguous(memory_format=torch.channels_last)
    assert Convolution(16, 8, 1, stride=2)(images).grad_fn._saved_stride == (2, 2)
    assert Convolution(15, 8, 1, stride=2)(images[:, :15]).grad_fn._saved_stride == (1, 1)
    assert Convolution(4, 8, 3, stride=2)(images[:, :4]).grad_fn._saved_stride == (2, 2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_two_streams_the_gradients_are_the_same():
    torch.manual_seed(0)
    layers = [Convolution(64, 64, 3).cuda() for _ in range(6)]
    stream = WeightGradientStream(torch.cuda.Stream())
    for _ in range(20):
        images = torch.randn(100, 64, 17, 17, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            ours = [found.clone() for found in gradients(layers, images, stream)]
            plain = gradients(layers, images)
        for left, right in zip(ours, plain, strict=True):
            torch.testing.assert_close(left, right, rtol=2e-2, atol=2e-2 * right.abs().max().item())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_two_streams_weights_that_are_updated_early_end_as_those_that_wait(monkeypatch):
    """Nothing on the first stream still reads them; what was wrong would grow step by step."""
    monkeypatch.setattr(convolution, "_UPDATED_AT_ONCE", 80_000)  # two layers

    def trained(early):
        torch.manual_seed(0)
        layers = [Convolution(64, 64, 3).cuda() for _ in range(6)]
        optimiser = Sgd([layer.weight for layer in layers], 1e-3, fused=True)
        stream = WeightGradientStream(torch.cuda.Stream())
        update = optimiser.step_early if early else None
        for _ in range(20):
            optimiser.zero_grad()
            out = torch.randn(100, 64, 17, 17, device="cuda")
            with (
                torch.autocast("cuda", dtype=torch.bfloat16),
                weight_gradients_on(torch.nn.ModuleList(layers), stream, update),
            ):
                for layer in layers:
                    out = layer(out).relu()
                out.float().square().mean().backward()
            optimiser.step()
        return torch.stack([layer.weight.detach() for layer in layers])

    early, late = trained(early=True), trained(early=False)
    torch.testing.assert_close(early, late, rtol=1e-2, atol=1e-3 * late.abs().max().item())
