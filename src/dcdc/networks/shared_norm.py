"""Batch norm whose statistics are of the batch of all processes, per copy group.

One exchange forward (each process's mean, sum of squares about it and count, put together by Chan's
rule, which loses no digits), one backward. Shapes: b images of this process, C channels, G copy
groups, R processes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dcdc.runtime.processes import Processes


def shared_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    groups: tuple[int, ...],
    processes: Processes,
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, and per group (G x C) the mean and the unbiased variance."""
    found: tuple[Tensor, Tensor, Tensor] = _SharedNorm.apply(  # type: ignore[no-untyped-call]
        x, weight, bias, eps, groups, processes
    )
    return found


class _SharedNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        groups: tuple[int, ...],
        processes: Processes,
    ) -> tuple[Tensor, Tensor, Tensor]:
        own = torch.stack([_statistics(part) for part in torch.split(_wide(x), list(groups))])
        mean, squares, count = merged(processes.gather(own))
        variance = squares / count
        scale = (variance + eps).rsqrt()
        y = torch.cat(
            [
                _centred(part, mean[g], scale[g]) * _column(weight, x) + _column(bias, x)
                for g, part in enumerate(torch.split(_wide(x), list(groups)))
            ]
        )
        ctx.save_for_backward(x, weight, mean, scale, count)
        ctx.groups, ctx.processes = groups, processes
        unbiased = squares / (count - 1)
        ctx.mark_non_differentiable(mean, unbiased)
        return y.to(x.dtype), mean, unbiased

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale, count = ctx.saved_tensors
        sizes = list(ctx.groups)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        parts = [
            (_centred(part, mean[g], scale[g]), wide)
            for g, (part, wide) in enumerate(
                zip(torch.split(_wide(x), sizes), torch.split(_wide(grad), sizes), strict=True)
            )
        ]
        # G x 2 x C: sums of the gradient, and of its product with the normalised input
        own = torch.stack(
            [torch.stack([g.sum(axes), (g * normal).sum(axes)]) for normal, g in parts]
        )
        of_bias, of_weight = own.sum(0)
        means = own.clone()
        ctx.processes.sum_in_place(means)
        means /= count[:, None]
        found = [
            (g - _column(m[0], x) - normal * _column(m[1], x)) * _column(s * weight, x)
            for (normal, g), m, s in zip(parts, means, scale, strict=True)
        ]
        of_x = torch.cat(found).to(x.dtype)
        return of_x, of_weight.to(weight.dtype), of_bias.to(weight.dtype), None, None, None


def _wide(x: Tensor) -> Tensor:
    """Half precision is lifted to float32, as torch's own batch norm does."""
    return x if x.dtype == torch.float64 else x.float()


def _statistics(part: Tensor) -> Tensor:
    """2C + 1: mean, sum of squares about it, count."""
    axes = [axis for axis in range(part.ndim) if axis != 1]
    variance, mean = torch.var_mean(part, axes, correction=0)
    n = part.numel() // part.shape[1]
    return torch.cat([mean, variance * n, mean.new_full((1,), n)])


def merged(parts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, sum of squares (G x C) and count (G x 1) of R x G x (2C + 1)."""
    n_channels = parts.shape[-1] // 2
    means, squares, counts = torch.split(parts, [n_channels, n_channels, 1], dim=-1)
    count = counts.sum(0)
    mean = (means * counts).sum(0) / count
    return mean, (squares + counts * (means - mean) ** 2).sum(0), count


def _centred(part: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return (part - _column(mean, part)) * _column(scale, part)


def _column(values: Tensor, x: Tensor) -> Tensor:
    return values.view(1, -1, *(1,) * (x.ndim - 2))
