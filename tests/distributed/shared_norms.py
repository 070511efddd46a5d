"""The norms on shares of two groups of images, one process each; run as a script, in Triton's
interpreter.

    TRITON_INTERPRET=1 RANK=0 WORLD_SIZE=2 ... python shared_norms.py OUT_FOLDER
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from dcdc.networks.convolution import Convolution
from dcdc.networks.copy_group_norm import CopyGroupNorm, PooledNorm
from dcdc.runtime.launch import read_launch
from dcdc.runtime.processes import Processes, joined

GROUPS = (5, 11)
"""Images: three and six for the first of two processes, two and five for the second."""
CHANNELS, SIDE = 3, 9
STEM_CHANNELS = 16
NAMES = ("plain", "fused", "pooled", "fused pooled")


def example() -> tuple[Tensor, Tensor, list[Tensor]]:
    """Images, a residual, and the slopes of both readers, with or without the pool."""
    generator = torch.Generator().manual_seed(0)

    def images(side: int, channels: int = CHANNELS) -> Tensor:
        drawn = torch.randn((sum(GROUPS), channels, side, side), generator=generator)
        return drawn.contiguous(memory_format=torch.channels_last)

    pooled = (SIDE // 2 + 1, STEM_CHANNELS)
    return images(SIDE) * 2 + 1, images(SIDE), [images(SIDE), images(*pooled), images(*pooled)]


def own(images: Tensor, processes: Processes) -> Tensor:
    parts = torch.split(images, list(GROUPS))
    found = torch.cat([part[processes.share(len(part))] for part in parts])
    return found.contiguous(memory_format=torch.channels_last)


def norm_of(name: str, dtype: torch.dtype) -> nn.Module:
    kind, channels = CopyGroupNorm, CHANNELS
    if "pooled" in name:
        kind, channels = PooledNorm, STEM_CHANNELS
    norm = kind(channels).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 1.5, channels))
        norm.bias.copy_(torch.linspace(-0.5, 0.5, channels))
    return norm


def stem_of(dtype: torch.dtype) -> Convolution:
    torch.manual_seed(1)
    return Convolution(CHANNELS, STEM_CHANNELS, 3).to(dtype, memory_format=torch.channels_last)


def learnt(name: str, norm: nn.Module, x: Tensor, residual: Tensor, slopes: list[Tensor]) -> dict:
    """`dx`, or of a stem the gradient of its filters, a share of it in each process."""
    if "pooled" in name:
        stem = stem_of(x.dtype)
        outs, slopes = norm(x, stem), slopes[1:]
    else:
        x, residual = x.clone().requires_grad_(), residual.clone().requires_grad_()
        outs, slopes = [norm(x, residual)], slopes[:1]
    torch.autograd.backward(list(outs), slopes)
    buffers = {"running_mean": norm.running_mean, "running_var": norm.running_var}
    summed = {"d_weight": norm.weight.grad, "d_bias": norm.bias.grad}
    last = {"d_filters": stem.weight.grad} if "pooled" in name else {"dx": x.grad}
    return buffers | summed | {"y": outs[0].detach()} | last


def main() -> None:
    from dcdc.networks import copy_group_norm, fused_norm

    x, residual, slopes = example()
    with joined(read_launch(), torch.device("cpu")) as processes:
        for name in NAMES:
            # as on a GPU, but for where the tensors lie
            copy_group_norm._FUSED_DEVICE = "cpu" if "fused" in name else "cuda"
            fused_norm.is_available = lambda: True
            fused_norm._processors = lambda _: 8
            norm = norm_of(name, torch.float32)
            norm.processes = processes
            norm.groups = tuple(len(range(n)[processes.share(n)]) for n in GROUPS)
            given = [own(images, processes) for images in (x, residual, *slopes)]
            found = learnt(name, norm, given[0], given[1], given[2:])
            torch.save(found, Path(sys.argv[1]) / f"{name}-{processes.rank}.pt")


if __name__ == "__main__":
    main()
