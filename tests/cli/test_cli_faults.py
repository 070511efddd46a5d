"""What a library raises where memory does not suffice, really asked for, becomes one line."""

import numpy as np
import pytest
import torch

from dcdc.cli.faults import exit_codes


@pytest.fixture
def told(capsys):
    def call(work) -> str:
        with pytest.raises(SystemExit) as stopped, exit_codes():
            work()
        assert stopped.value.code == 2
        line = capsys.readouterr().err
        assert line.startswith("dcdc: ")
        assert len(line.splitlines()) == 1
        return line

    return call


def deeper(level: int = 0) -> int:
    return deeper(level + 1)


@pytest.mark.parametrize(
    "work",
    [
        lambda: torch.empty(2**50),
        lambda: torch.nn.Linear(2**31, 2**20),
        lambda: torch.empty(2**40, 2**40),
        lambda: np.empty(2**55),
        lambda: bytearray(2**55),
    ],
    ids=["torch", "a layer", "more than can be counted", "numpy", "Python"],
)
def test_memory_that_does_not_suffice_is_told_with_what_to_lower(told, work):
    line = told(work)
    assert line.startswith("dcdc: memory does not suffice")
    assert "what was written before stays: lower --batch-size, --size or --clusters" in line


def test_the_amount_is_told_where_it_is_known(told):
    assert "(4503599627370496 bytes more were asked for)" in told(lambda: torch.empty(2**50))


def test_nesting_without_end_is_told(told):
    assert "nested too deep" in told(deeper)


def test_a_fault_of_ours_keeps_its_traceback():
    with pytest.raises(RuntimeError, match="mat1 and mat2"), exit_codes():
        torch.ones(2, 3) @ torch.ones(2, 3)


@pytest.mark.gpu
def test_memory_of_a_gpu_that_does_not_suffice_is_told(told):
    line = told(lambda: torch.empty(2**42, device="cuda"))
    assert line.startswith("dcdc: the GPU's memory does not suffice (16384.00 GiB more were asked")
