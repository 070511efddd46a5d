import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from baselines import floors
from baselines.convolutions import convolutions_of, forward_and_backward
from baselines.floors import floor_trials
from baselines.step_flops import step_flops
from dcdc.bench.steps import build_case

COPIES = 12


def test_layers_are_the_backbones_for_all_copies_of_a_batch(digits):
    layers = convolutions_of(digits)
    shapes = [(layer.input_shape, layer.weight_shape) for layer in layers]
    assert shapes == [
        ((COPIES, 1, 8, 8), (32, 1, 3, 3)),
        ((COPIES, 32, 8, 8), (64, 32, 3, 3)),
        ((COPIES, 64, 4, 4), (64, 64, 3, 3)),
    ]
    assert [layer.is_first for layer in layers] == [True, False, False]


def test_layers_of_the_papers_backbone():
    layers = convolutions_of(build_case("cifar10-paper", {"train.device": "cpu"}, []))
    assert len(layers) == 1 + 32 + 3  # the stem, two a block, a projection in three stages
    assert layers[0].input_shape == (200, 2, 32, 32)  # Sobel's two edges
    assert layers[-1].input_shape == (200, 512, 3, 3)


def test_flops_are_those_of_every_layer_both_ways(digits, cpu):
    def convolution(n_in, n_out, side):
        return 2 * COPIES * n_in * n_out * 9 * side**2

    def dense(n_in, n_out):
        return 2 * COPIES * n_in * n_out

    # A gradient for the weights and one for the input, which the first layer does without.
    expected = 2 * convolution(1, 32, 8) + 3 * convolution(32, 64, 8) + 3 * convolution(64, 64, 4)
    run = forward_and_backward(convolutions_of(digits), cpu, torch.float32)
    with FlopCounterMode(display=False) as counter:
        run()
    assert counter.get_total_flops() == expected
    assert step_flops(digits) == expected + 3 * dense(64 * 16, 256) + 3 * dense(256, 10)


def test_arithmetic_is_the_flops_at_the_measured_rate(digits, cpu, monkeypatch):
    monkeypatch.setattr(floors, "_SIDE", 64)
    found = {trial.name: trial.measure() for trial in floor_trials(digits, cpu, 0.02)}
    product = found["product of 64 x 64, float32"]
    flops_per_ms = 2 * 64**3 / product.timing.ms
    assert product.details["teraflops_per_second"] == pytest.approx(flops_per_ms / 1e9)
    arithmetic = found[floors.ARITHMETIC]
    assert arithmetic.timing.ms == pytest.approx(step_flops(digits) / flops_per_ms)
    assert arithmetic.timing.n_blocks == product.timing.n_blocks
    assert found[floors.CONVOLUTIONS].details == {"n_layers": 3, "dtype": "float32"}


def test_no_arithmetic_without_a_rate(digits, cpu):
    trials = floor_trials(digits, cpu, 0.02)
    next(trials)
    with pytest.raises(RuntimeError, match="rate was not measured"):
        next(trials).measure()
