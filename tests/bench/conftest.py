import pytest
import torch

from dcdc.bench.case import build_case


@pytest.fixture
def cpu() -> torch.device:
    return torch.device("cpu")


@pytest.fixture
def digits():
    """4 images, 2 repeats."""
    values = {"train.device": "cpu", "train.batch_size": 4}
    return build_case("digits", values, ["network.trunk=small", "train.n_repeats=2"])
