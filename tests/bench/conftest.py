import pytest
import torch

from dcdc.bench.steps import build_case


@pytest.fixture
def cpu() -> torch.device:
    return torch.device("cpu")


@pytest.fixture
def digits():
    """4 images, 2 repeats."""
    values = {"train.device": "cpu", "heads.batch_size": 4}
    return build_case("digits", values, ["network.backbone=small", "heads.n_repeats=2"])
