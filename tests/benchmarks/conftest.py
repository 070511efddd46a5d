"""The scripts of benchmarks/ are no package of ours: they find each other by their own folder."""

import sys
from pathlib import Path

import pytest
import torch

from dcdc.bench.steps import build_case

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

ON_CPU = {"train.device": "cpu", "heads.batch_size": 4}
SMALL = ["network.backbone=small", "heads.n_repeats=2"]


@pytest.fixture
def cpu() -> torch.device:
    return torch.device("cpu")


@pytest.fixture(params=["digits", "cifar10-paper"])
def case(request):
    """One preset that moves grey images, one that crops and recolours; 4 images, 2 repeats."""
    return build_case(request.param, ON_CPU, SMALL)


@pytest.fixture
def digits():
    return build_case("digits", ON_CPU, SMALL)
