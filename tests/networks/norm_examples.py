"""Inputs of the norms' kernels, a slow answer, and how near to it theirs must come.

Shapes: N images, C channels, H x W pixels.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

MOMENTUM, EPS = 0.1, 1e-5
F32, BF16 = torch.float32, torch.bfloat16


def interpret_kernels() -> None:
    """For a process that has not imported Triton yet."""
    os.environ["TRITON_INTERPRET"] = "1"


@dataclass(frozen=True)
class Example:
    x: Tensor
    residual: Tensor | None
    weight: Tensor
    bias: Tensor
    dy: Tensor
    dy2: Tensor | None = None
    """Of a forked output's second reader."""


def example(device, n_images, channels, side, dtype=F32, add=False, seed=0, two=False) -> Example:
    generator = torch.Generator().manual_seed(seed)

    def images():
        drawn = torch.randn((n_images, channels, *side), generator=generator)
        return drawn.to(device, dtype, memory_format=torch.channels_last)

    weight = torch.rand(channels, generator=generator) + 0.5
    bias = torch.randn(channels, generator=generator)
    x, dy = images() * 2 + 1, images()
    residual = images() if add else None
    return Example(x, residual, weight.to(device), bias.to(device), dy, images() if two else None)


def in_float64(example: Example) -> Example:
    """On the CPU. Two gradients become their sum in their own precision, as autograd has it."""
    dy = example.dy if example.dy2 is None else example.dy + example.dy2
    tensors = (example.x, example.residual, example.weight, example.bias, dy)
    return Example(*(t if t is None else t.cpu().double() for t in tensors))


def learnt(
    apply: Callable[..., tuple[Tensor, ...]],
    example: Example,
    processors: int = 0,
    read: tuple[int, ...] = (),
) -> dict[str, Tensor]:
    """Of x, residual, weight, bias and the buffers: what comes out of them, forward and backward.

    Planned for as many processors as are asked for: one makes few programs of many tiles. `read`:
    which of a fork's outputs have a reader; with two gradients both have one.
    """
    given = (example.x, example.residual, example.weight, example.bias)
    x, residual, weight, bias = (t if t is None else t.detach().requires_grad_() for t in given)
    buffers = torch.zeros_like(bias), torch.ones_like(bias), torch.tensor(0, device=bias.device)
    buffers = [buffer.detach() for buffer in buffers]
    slopes = [slope for slope in (example.dy, example.dy2) if slope is not None]
    with pytest.MonkeyPatch.context() as patch:
        if processors:
            patch.setattr("dcdc.networks.fused_norm._processors", lambda _: processors)
        outs = apply(x, residual, weight, bias, *buffers)
        readers = [outs[which] for which in read or range(len(slopes))]
        torch.autograd.backward(readers, slopes)
    assert all(out.data_ptr() == outs[0].data_ptr() for out in outs)
    found = {"y": outs[-1].detach(), "dx": x.grad, "d_weight": weight.grad, "d_bias": bias.grad}
    if residual is not None:
        found["d_residual"] = residual.grad
    names = ("running_mean", "running_var", "num_batches_tracked")
    return found | dict(zip(names, buffers, strict=True))


def slow_norm(x, weight, bias, running_mean, running_var, batches, groups) -> Tensor:
    parts = []
    for part in x.split(groups):
        rows = part.permute(0, 2, 3, 1).reshape(-1, part.shape[1])
        mean = rows.sum(0) / len(rows)
        squares = ((rows - mean) ** 2).sum(0)
        parts.append(
            (part - mean[:, None, None]) / (squares / len(rows) + EPS).sqrt()[:, None, None]
        )
        running_mean += MOMENTUM * (mean.detach() - running_mean)
        running_var += MOMENTUM * (squares.detach() / (len(rows) - 1) - running_var)
        batches += 1
    return torch.cat(parts) * weight[:, None, None] + bias[:, None, None]


def assert_alike(
    found: dict[str, Tensor], expected: dict[str, Tensor], float32: float = 2e-5
) -> None:
    """To float32's last digits, or to the one bfloat16 keeps: the interpreter cuts off the rest."""
    assert found.keys() == expected.keys()
    for name, value in found.items():
        tolerance = {"rtol": float32, "atol": float32}
        if value.dtype == BF16:
            tolerance = {"rtol": 2**-7 if value.device.type == "cpu" else 2**-8, "atol": 1e-6}
        wanted = expected[name].cpu().double()
        torch.testing.assert_close(
            value.cpu().double(), wanted, **tolerance, msg=f"{name}: {{}}".format
        )
