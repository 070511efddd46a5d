"""A config's settings reach what each phase minimises, and what of it is compiled."""

from functools import partial

import pytest
import torch

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.config import with_values
from dcdc.engine.observer import SilentObserver
from dcdc.losses import dcdc_loss, iic_loss
from dcdc.prepare import assembly
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve


def training(config, image_set):
    return build_training(resolve(config, image_set), image_set, SilentObserver(), None)


def test_a_phase_s_settings_reach_its_objective(tiny_config, tiny_set):
    config = with_values(
        tiny_config,
        {
            "phases": ("contrast", "heads", "self_label"),
            "contrast.epochs": 1,
            "contrast.batch_size": 16,
            "contrast.temperature": 0.7,
            "contrast.projection": 9,
            "self_label.epochs": 1,
            "self_label.batch_size": 16,
            "self_label.threshold": 0.8,
            "heads.neighbours": 2,
            "heads.n_repeats": 3,
        },
    )
    built = training(config, tiny_set)
    contrast, heads, self_label = (step.objective for step in built.trainer.steps)
    assert (contrast.phase.temperature, contrast.perturbed_copy.n_repeats) == (0.7, 2)
    assert (heads.partners, heads.perturbed_copy.n_repeats) == (True, 3)
    assert (self_label.threshold, self_label.perturbed_copy.n_repeats) == (0.8, 1)
    assert not self_label.partners
    network = built.model.network.eval()
    features = network.features(torch.zeros(2, 1, 8, 8))
    assert network.parts["contrast"](features).shape == (2, 9)


def test_byol_has_its_settings_and_its_own_part_of_the_network(tiny_config, tiny_set):
    byol = {"byol.epochs": 1, "byol.batch_size": 16, "byol.momentum": 0.5, "byol.projection": 9}
    built = training(with_values(tiny_config, {"phases": ("byol", "heads")} | byol), tiny_set)
    objective, _ = (step.objective for step in built.trainer.steps)
    assert (objective.phase.momentum, objective.perturbed_copy.n_repeats) == (0.5, 2)
    network = built.model.network.eval()
    images = network.preprocess(torch.zeros(2, 1, 8, 8))
    part = network.parts["byol"]
    assert part.target(images).shape == part.predictor(part.target(images)).shape == (2, 9)
    assert list(network.parts) == ["byol"]


def test_a_phase_that_is_left_out_adds_nothing_to_the_network(tiny_config, tiny_set):
    config = with_values(tiny_config, {"phases": ("contrast", "heads")})
    assert list(training(config, tiny_set).model.network.parts) == []


@pytest.mark.parametrize(
    ("loss", "function", "given"),
    [
        (
            "dcdc",
            dcdc_loss,
            {"temperature": 0.7, "sample_weight": 2.0, "class_weight": 1.0, "balance_weight": 3.0},
        ),
        ("iic", iic_loss, {}),
    ],
)
def test_the_loss_takes_its_own_settings_of_the_heads(tiny_config, loss, function, given):
    settings = {"temperature": 0.7, "sample_weight": 2.0, "balance_weight": 3.0, "loss": loss}
    values = {f"heads.{name}": value for name, value in settings.items()}
    found = with_values(tiny_config, values).phases[0].loss_function()
    assert isinstance(found, partial)
    assert (found.func, found.keywords) == (function, given)


@pytest.mark.parametrize("with_kernel", [(), ("original",), ("original", "perturbed")])
def test_only_what_has_no_kernel_is_compiled(tiny_config, tiny_set, monkeypatch, with_kernel):
    for kind, name in ((OriginalCopy, "original"), (PerturbedCopy, "perturbed")):
        monkeypatch.setattr(kind, "has_kernel", lambda *_, name=name: name in with_kernel)
    given = []

    def compiled(function):
        given.append(function)
        return function

    monkeypatch.setattr(assembly, "_compiled", lambda *_: compiled)
    (step,) = training(tiny_config, tiny_set).trainer.steps
    objective = step.objective
    copies = {"original": objective.original_copy, "perturbed": objective.perturbed_copy}
    wanted = [copy.apply for name, copy in copies.items() if name not in with_kernel]
    assert given[:-1] == wanted
    assert given[-1].func is dcdc_loss
