import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from baselines import floors
from baselines.floors import ARITHMETIC, CONVOLUTIONS, floor_name, floor_trials, work_of
from dcdc.bench.steps import build_case, phase_steps, step_name
from dcdc.engine.observer import SilentObserver
from dcdc.prepare.assembly import build_training

aten = torch.ops.aten
OVER = "heads step, over clustering head"
CLUSTER = "heads step, cluster head"
SELF_LABEL = "self label step, cluster head"


@pytest.fixture
def works(cpu):
    """Of each step of a case, by its name, or of one of that name alone."""

    def found(case, name=""):
        trainer = build_training(case.config, case.image_set, SilentObserver(), None).trainer
        steps = [one for one in phase_steps(trainer) if name in ("", step_name(one))]
        return {step_name(one): work_of(case, one, trainer, cpu) for one in steps}

    return found


@pytest.fixture
def recipe(monkeypatch):
    """Features that learn from 6 images, frozen heads on 8, labels of the run's own on 4."""
    monkeypatch.setattr("dcdc.bench.steps._MOST_ON_CPU", 64)
    settings = [
        *("network.backbone=small", "data.size=16", "frozen_heads.neighbours=3"),
        *("contrast.batch_size=6", "frozen_heads.batch_size=8", "self_label.batch_size=4"),
    ]
    return build_case("stl10", {"train.device": "cpu"}, settings)


def forwards(work):
    return [call for call in work.convolutions if call.operator is aten.convolution.default]


def gradients(work):
    return [
        call for call in work.convolutions if call.operator is aten.convolution_backward.default
    ]


def shapes(call):
    return [tuple(value.shape) for value in call.arguments if isinstance(value, torch.Tensor)]


def flops_of(calls):
    with FlopCounterMode(display=False) as counter:
        for call in calls:
            call()
    return counter.get_total_flops()


def layers_of(copies):
    return [
        [(copies, 1, 8, 8), (32, 1, 3, 3)],
        [(copies, 32, 8, 8), (64, 32, 3, 3)],
        [(copies, 64, 4, 4), (64, 64, 3, 3)],
    ]


def test_layers_are_the_backbones_for_all_copies_of_a_batch(digits, works):
    """The originals go through it first, then two copies of each."""
    (work,) = works(digits, CLUSTER).values()
    assert [shapes(call) for call in forwards(work)] == layers_of(4) + layers_of(8)
    backwards = gradients(work)
    assert [shapes(call)[1:] for call in backwards] == [
        *reversed(layers_of(8)),
        *reversed(layers_of(4)),
    ]
    # Of the input and of the weights: nothing before the first layer learns.
    wanted = [call.arguments[-1][:2] for call in backwards]
    assert wanted == 2 * [[True, True], [True, True], [False, True]]


def test_layers_of_the_papers_backbone(works):
    settings = ["heads.batch_size=2", "heads.n_repeats=2"]
    case = build_case("cifar10-paper", {"train.device": "cpu"}, settings)
    (work,) = works(case, CLUSTER).values()
    n_layers = 1 + 32 + 3  # the stem, two a block, a projection in three stages
    learnt = [call for call in forwards(work) if shapes(call)[0][1] != 1]  # not Sobel's own
    assert len(learnt) == len(gradients(work)) == 2 * n_layers
    first, second = learnt[:n_layers], learnt[n_layers:]
    for layers, copies in ((first, 2), (second, 4)):
        assert shapes(layers[0])[0] == (copies, 2, 32, 32)  # Sobel's two edges
        assert shapes(layers[-1])[0] == (copies, 512, 3, 3)


def test_flops_are_those_of_every_layer_both_ways(digits, works):
    def convolution(n_in, n_out, side):
        return 2 * n_in * n_out * 9 * side**2

    def head(n_clusters):
        return 2 * 64 * 16 * 256 + 2 * 256 * n_clusters

    def loss(n_clusters):
        """Eight pairs: each against each, and every cluster against every cluster."""
        return 2 * 8 * n_clusters * 8 + 2 * n_clusters * 8 * n_clusters

    first, second, third = convolution(1, 32, 8), convolution(32, 64, 8), convolution(64, 64, 4)
    forward = first + second + third
    # A gradient for the weights and one for the input, which the first layer does without.
    learnt = 2 * first + 3 * second + 3 * third
    n_over = digits.config.network.over_clusters
    found = works(digits)
    assert {name: flops_of(work.convolutions) for name, work in found.items()} == {
        OVER: 12 * learnt,
        CLUSTER: 12 * learnt,
        SELF_LABEL: 4 * learnt + 4 * forward,  # the originals' answers are only looked at
    }
    assert {name: work.flops for name, work in found.items()} == {
        OVER: 12 * (learnt + 3 * head(n_over)) + 3 * loss(n_over),
        CLUSTER: 12 * (learnt + 3 * head(10)) + 3 * loss(10),
        SELF_LABEL: 4 * (learnt + 3 * head(10)) + 4 * (forward + head(10)),
    }


def test_each_phase_of_a_recipe_has_its_own_work(recipe, works):
    found = works(recipe)
    contrast, frozen, self_label = found.values()
    assert [shapes(call)[0][0] for call in forwards(contrast)] == [12] * 3
    assert [shapes(call)[0][0] for call in forwards(self_label)] == [4] * 6
    assert len(gradients(contrast)) == len(gradients(self_label)) == 3
    assert frozen.convolutions == []
    assert frozen.flops > 0


def test_each_phase_of_a_recipe_has_its_rows(recipe, cpu, monkeypatch):
    """Frozen heads, which train no backbone, have none of convolutions."""
    monkeypatch.setattr(floors, "_SIDE", 64)
    found = {trial.name: trial.measure() for trial in floor_trials(recipe, cpu, 0.02)}
    contrast = "contrast step, contrast"
    assert list(found) == [
        "product of 64 x 64, float32",
        floor_name(contrast, ARITHMETIC),
        floor_name(contrast, CONVOLUTIONS),
        floor_name("frozen heads step, cluster head", ARITHMETIC),
        floor_name(SELF_LABEL, ARITHMETIC),
        floor_name(SELF_LABEL, CONVOLUTIONS),
    ]
    assert found[floor_name(contrast, CONVOLUTIONS)].details == {"n_calls": 6, "dtype": "float32"}
    assert found[floor_name(SELF_LABEL, CONVOLUTIONS)].details["n_calls"] == 9


def test_arithmetic_is_the_flops_at_the_measured_rate(digits, cpu, works, monkeypatch):
    monkeypatch.setattr(floors, "_SIDE", 64)
    found = {trial.name: trial.measure() for trial in floor_trials(digits, cpu, 0.02)}
    product = found["product of 64 x 64, float32"]
    flops_per_ms = 2 * 64**3 / product.timing.ms
    assert product.details["teraflops_per_second"] == pytest.approx(flops_per_ms / 1e9)
    for name, work in works(digits).items():
        arithmetic = found[floor_name(name, ARITHMETIC)]
        assert arithmetic.timing.ms == pytest.approx(work.flops / flops_per_ms)
        assert arithmetic.timing.n_blocks == product.timing.n_blocks
        assert arithmetic.details == {"flops": work.flops, "at_the_rate_of": "float32"}


def test_no_arithmetic_without_a_rate(digits, cpu):
    trials = floor_trials(digits, cpu, 0.02)
    next(trials)
    with pytest.raises(RuntimeError, match="rate was not measured"):
        next(trials).measure()
