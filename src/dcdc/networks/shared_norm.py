"""Batch norm whose statistics are of the batch of all processes, per copy group.

One exchange forward (each process's mean, sum of squares about it and count, put together by Chan's
rule, which loses no digits), one backward. Shapes: b images of this process, C channels, G copy
groups, R processes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

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
        sizes = list(groups)
        parts = torch.split(_wide(x), sizes)
        own = torch.stack([_statistics(part) for part in parts])
        mean, squares, count = merged(processes.all_gather(own))
        y = _joined(
            [
                F.batch_norm(part, mean[g], squares[g] / count[g], weight, bias, eps=eps)
                for g, part in enumerate(parts)
            ]
        )
        scale = (squares / count + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, scale, count)
        ctx.sizes, ctx.processes = sizes, processes
        unbiased = squares / (count - 1)
        ctx.mark_non_differentiable(mean, unbiased)
        return y.to(x.dtype), mean, unbiased

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale, count = ctx.saved_tensors
        parts, slopes = (torch.split(_wide(whole), ctx.sizes) for whole in (x, grad))
        # As if the group's rows here were all there are: torch's own kernels do it in one pass.
        alone = [
            torch.ops.aten.native_batch_norm_backward(
                *(slope, part, weight, None, None, mean[g], scale[g]),
                *(True, 0.0, (True, True, True)),
            )
            for g, (slope, part) in enumerate(zip(slopes, parts, strict=True))
        ]
        # G x 2 x C: sums of the gradient, and of its product with the normalised input
        own = torch.stack([torch.stack([of_bias, of_weight]) for _, of_weight, of_bias in alone])
        everyones = own.clone()
        ctx.processes.all_reduce_sum(everyones)
        found = []
        for g, (of_part, _, _) in enumerate(alone):
            n = x[0, 0].numel() * ctx.sizes[g]
            level, tilt = (own[g] / n - everyones[g] / count[g]) * (scale[g] * weight)
            tilt = tilt * scale[g]
            mended = torch.addcmul(of_part, parts[g], _column(tilt, x))
            found.append(mended.add_(_column(level - tilt * mean[g], x)))
        of_bias, of_weight = own.sum(0)
        of_x = _joined(found).to(x.dtype)
        return of_x, of_weight.to(weight.dtype), of_bias.to(weight.dtype), None, None, None


def _wide(x: Tensor) -> Tensor:
    """Half precision is lifted to float32, as torch's own batch norm does."""
    return x if x.dtype == torch.float64 else x.float()


def _statistics(part: Tensor) -> Tensor:
    """2C + 1: mean, sum of squares about it, count."""
    _, mean, scale = torch.native_batch_norm(part, None, None, None, None, True, 0.0, 0.0)
    variance = torch.where(scale == 0, 0.0, scale**-2)  # 0 is what a constant channel has here
    n = part.numel() // part.shape[1]
    return torch.cat([mean, variance * n, mean.new_full((1,), n)])


def merged(parts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, sum of squares (G x C) and count (G x 1) of R x G x (2C + 1)."""
    n_channels = parts.shape[-1] // 2
    means, squares, counts = torch.split(parts, [n_channels, n_channels, 1], dim=-1)
    count = counts.sum(0)
    mean = (means * counts).sum(0) / count
    return mean, (squares + counts * (means - mean) ** 2).sum(0), count


def _joined(parts: list[Tensor]) -> Tensor:
    """One part alone is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _column(values: Tensor, x: Tensor) -> Tensor:
    return values.view(1, -1, *(1,) * (x.ndim - 2))
