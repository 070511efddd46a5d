"""A config's settings reach what each phase minimises, and what of it is compiled."""

import pytest
import torch

from dcdc import assembly
from dcdc.assembly import build_training
from dcdc.augment import OriginalCopy, PerturbedCopy, to_float
from dcdc.config import with_values
from dcdc.config_for_images import resolve
from dcdc.engine.observer import SilentObserver
from dcdc.engine.plan import HEADS
from dcdc.losses import dcdc_loss


def training(config, image_set):
    return build_training(resolve(config, image_set), image_set, SilentObserver(), None)


def test_a_phase_s_settings_reach_its_objective(tiny_config, tiny_set):
    config = with_values(
        tiny_config,
        {
            "instance.epochs": 1,
            "instance.batch_size": 16,
            "instance.copies": 4,
            "instance.temperature": 0.7,
            "instance.projection": 9,
            "self_label.epochs": 1,
            "self_label.batch_size": 16,
            "self_label.threshold": 0.8,
            "train.neighbours": 2,
            "train.n_repeats": 3,
        },
    )
    built = training(config, tiny_set)
    instance, heads, self_label = (step.objective for step in built.trainer.steps.values())
    assert (instance.temperature, instance.perturbed_copy.n_repeats) == (0.7, 4)
    assert (heads.partners, heads.perturbed_copy.n_repeats) == (True, 3)
    assert (self_label.threshold, self_label.perturbed_copy.n_repeats) == (0.8, 1)
    assert not self_label.partners
    projected = built.model.network.eval().project(to_float(torch.zeros(2, 1, 8, 8)))
    assert projected.shape == (2, 9)


@pytest.mark.parametrize("with_kernel", [(), ("original",), ("original", "perturbed")])
def test_only_what_has_no_kernel_is_compiled(tiny_config, tiny_set, monkeypatch, with_kernel):
    for kind, name in ((OriginalCopy, "original"), (PerturbedCopy, "perturbed")):
        monkeypatch.setattr(kind, "has_kernel", lambda *_, name=name: name in with_kernel)
    given = []

    def compiled(function):
        given.append(function)
        return function

    monkeypatch.setattr(assembly, "_compiled", lambda *_: compiled)
    objective = training(tiny_config, tiny_set).trainer.steps[HEADS].objective
    copies = {"original": objective.original_copy, "perturbed": objective.perturbed_copy}
    wanted = [copy.apply for name, copy in copies.items() if name not in with_kernel]
    assert given[:-1] == wanted
    assert given[-1].func is dcdc_loss
