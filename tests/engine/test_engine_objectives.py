"""One pass over both copies and one for each: the same meaning."""

from dataclasses import replace

import pytest
import torch

from dcdc.config import with_values
from dcdc.engine.objectives import one_pass, two_passes
from dcdc.engine.observer import SilentObserver
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve


@pytest.mark.parametrize("backbone", ["small", pytest.param("resnet18", marks=pytest.mark.slow)])
def test_one_pass_means_what_two_passes_mean(tiny_config, tiny_set, backbone):
    config = with_values(tiny_config, {"network.backbone": backbone})
    trainers = [
        build_training(resolve(config, tiny_set), tiny_set, SilentObserver(), None).trainer
        for _ in range(2)
    ]
    terms = []
    for trainer, passes in zip(trainers, (two_passes, one_pass), strict=True):
        (step,), objective = trainer.steps, trainer.steps[0].objective
        objective.tools = replace(objective.tools, passes=passes)
        trainer.network.double()
        objective.copies = doubled(objective.copies)
        trainer.generator.manual_seed(0)
        for _ in range(3):
            found = step(torch.arange(16), (CLUSTER_HEAD, OVER_CLUSTERING_HEAD))
        terms.append(found)
    for name in terms[0]:
        torch.testing.assert_close(terms[0][name], terms[1][name], rtol=1e-9, atol=1e-12)
    two, one = (trainer.network.state_dict() for trainer in trainers)
    for name in two:
        torch.testing.assert_close(one[name], two[name], rtol=1e-6, atol=1e-9, msg=name)


def doubled(apply):
    return lambda *arguments: tuple(copy.double() for copy in apply(*arguments))
