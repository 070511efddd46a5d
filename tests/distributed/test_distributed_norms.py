"""Statistics of all processes, by plain operations and by the kernels, against one float64 norm."""

from importlib.util import find_spec

import pytest
import torch
from peers import HERE, finish, start
from shared_norms import GROUPS, NAMES, example, learnt, norm_of

from dcdc.runtime.processes import share

pytestmark = [
    pytest.mark.slow,  # Triton interprets its kernels, in two processes
    pytest.mark.skipif(find_spec("triton") is None, reason="the kernels need triton"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("norms")
    finish(start([str(HERE / "shared_norms.py"), str(folder)], 2, TRITON_INTERPRET="1"))
    return lambda name: [torch.load(folder / f"{name}-{rank}.pt") for rank in range(2)]


def in_order(parts: list[torch.Tensor]) -> torch.Tensor:
    """Group by group, from what each process has of every group."""
    sizes = [[len(range(n)[share(n, rank, 2)]) for n in GROUPS] for rank in range(2)]
    split = [torch.split(part, own) for part, own in zip(parts, sizes, strict=True)]
    return torch.cat([split[rank][group] for group in range(2) for rank in range(2)])


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_norm_as_one_does(found, name):
    x, residual, slopes = (value for value in example())
    norm = norm_of(name, torch.float64)
    norm.groups = GROUPS
    wide = [slope.double() for slope in slopes]
    expected = learnt(name, norm, x.double(), residual.double(), wide)
    first, second = found(name)
    near = {"rtol": 1e-4, "atol": 1e-5}
    for key in ("running_mean", "running_var"):
        assert torch.equal(first[key], second[key])
        torch.testing.assert_close(first[key].double(), expected[key], **near)
    for key in {"d_weight", "d_bias", "d_filters"} & expected.keys():
        assert not torch.allclose(first[key].double(), expected[key], **near)  # a share alone
        torch.testing.assert_close((first[key] + second[key]).double(), expected[key], **near)
    for key in {"y", "dx"} & expected.keys():
        both = in_order([first[key], second[key]])
        torch.testing.assert_close(both.double(), expected[key], **near)
