"""Against PyTorch's own pool; the kernel through Triton's interpreter, in a process told so."""

import pytest
import torch
from torch.nn import functional as F

from dcdc.networks.halving_pool import HalvingPool


@pytest.mark.parametrize("side", [8, 9, 32])
def test_on_a_cpu_it_is_pytorchs_pool(side):
    x = torch.randn(2, 3, side, side + 3)
    assert torch.equal(HalvingPool()(x), F.max_pool2d(x, 2, 2, 1))


KERNEL = """
import torch
from torch.nn import functional as F
from dcdc.networks.halving_pool_kernel import halving_pool
torch.manual_seed(0)
for shape in ((2, 5, 8, 8), (1, 70, 5, 6), (3, 64, 4, 4)):
    x = torch.randn(shape).mul(2).round()  # many ties
    x = x.contiguous(memory_format=torch.channels_last)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, wanted = halving_pool(ours), F.max_pool2d(theirs, 2, 2, 1)
    slope = torch.randn_like(wanted)
    y.backward(slope)
    wanted.backward(slope)
    assert torch.equal(y, wanted)
    assert torch.equal(ours.grad, theirs.grad)
print("agrees")
"""


def test_the_kernel_does_what_pytorch_does_ties_included(interpreted):
    assert interpreted(KERNEL) == "agrees\n"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu_too(dtype):
    x = torch.randn(50, 64, 32, 32, device="cuda").to(dtype)
    x = x.contiguous(memory_format=torch.channels_last)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, wanted = HalvingPool()(ours), F.max_pool2d(theirs, 2, 2, 1)
    slope = torch.randn_like(wanted)
    y.backward(slope)
    wanted.backward(slope)
    assert torch.equal(y, wanted)
    assert torch.equal(ours.grad, theirs.grad)
