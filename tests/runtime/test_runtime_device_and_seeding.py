import pytest
import torch

from dcdc.cli.words import COMMAND_LINE
from dcdc.errors import InputError
from dcdc.estimator.words import PYTHON
from dcdc.runtime.device import autocast, cpu_threads, describe_device, is_available, pick_device
from dcdc.runtime.seeding import derive_generator, derive_seed


def test_auto_takes_the_best_device_there_is(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto").type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("auto").type == "mps"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device("auto").type == "cpu"


def test_a_device_that_is_not_there_is_named_with_those_that_are(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(InputError, match="'cuda' is not available here") as caught:
        pick_device("cuda")
    assert caught.value.told(COMMAND_LINE).endswith(": use --device auto or cpu")
    assert caught.value.told(PYTHON).endswith(": use device='auto' or cpu")
    assert not is_available("cuda")
    assert is_available("cpu")
    assert is_available("auto")


def test_threads_hold_inside_the_block_alone():
    before = torch.get_num_threads()
    with cpu_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        assert f"{before + 1} threads" in describe_device(torch.device("cpu"))
    assert torch.get_num_threads() == before
    with cpu_threads(0):
        assert torch.get_num_threads() == before


def test_bfloat16_is_for_cuda_alone():
    with pytest.raises(InputError, match="bfloat16 is for CUDA, not for cpu") as caught:
        autocast(torch.device("cpu"), "bfloat16")
    assert "use --device cuda, or leave --set train.precision" in caught.value.told(COMMAND_LINE)
    with autocast(torch.device("cpu"), "float32"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_streams_are_fixed_by_their_path_and_differ_between_paths():
    paths = [(0, "order", 1), (0, "order", 2), (0, "augment", 1), (1, "order", 1), (0, "order", 11)]
    seeds = [derive_seed(*path) for path in paths]
    assert len(set(seeds)) == len(paths)
    assert seeds == [derive_seed(*path) for path in paths]
    assert all(0 <= seed < 2**63 for seed in seeds)
    draws = [torch.rand(3, generator=derive_generator(3, "order", 1)) for _ in range(2)]
    assert torch.equal(*draws)
