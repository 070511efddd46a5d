"""Batch norm whose statistics are of the batch of all processes, per copy group.

One exchange forward (each process's mean, sum of squares about it and count, put together by Chan's
rule, which loses no digits), one backward. Shapes: b images of this process, C channels, G copy
groups, R processes.

Between the two kernels of a fused norm, one process's numbers become those of all. The second
kernel folds whatever its workspace holds, so it need not know of other processes: every chunk is
given the mean of all, and its share of the squares of all; or the first chunk the sum of all. There
C is padded to whole blocks; F chunks at most; the workspace is G x 2 x C x F.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

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
            corrected = torch.addcmul(of_part, parts[g], _column(tilt, x))
            found.append(corrected.add_(_column(level - tilt * mean[g], x)))
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


class Shared(NamedTuple):
    """Of all processes, and the same bits in each of them."""

    means: Tensor
    """G x C"""
    squares: Tensor
    """G x C: sums of squares about the mean."""
    counts: Tensor
    """G x 1: rows."""


def share_statistics_between(
    partials: Tensor, rows: Sequence[int], chunk_rows: int, processes: Processes
) -> Shared:
    """`rows`: of each group, in this process."""
    in_chunk = _rows_of_chunks(rows, chunk_rows, partials)
    means, squares = torch.where(in_chunk[:, None] > 0, partials, 0.0).unbind(1)
    n = in_chunk.sum(-1)  # G x 1
    mean = (means * in_chunk).sum(-1) / n
    spread = (squares + (means - mean[..., None]) ** 2 * in_chunk).sum(-1)
    mean, spread, counts = merged(processes.all_gather(torch.cat([mean, spread, n], dim=-1)))
    partials[:, 0] = mean[..., None]
    partials[:, 1] = (spread / counts)[..., None] * in_chunk
    return Shared(mean, spread, counts)


def share_sums_between(
    partials: Tensor, rows: Sequence[int], chunk_rows: int, counts: Tensor, processes: Processes
) -> None:
    """The second kernel divides by this process's rows, hence their share of all rows here; the
    shares that it leaves in the gradients of weight and bias add up over the processes."""
    in_chunk = _rows_of_chunks(rows, chunk_rows, partials)
    sums = torch.where(in_chunk[:, None] > 0, partials, 0.0).sum(-1)  # G x 2 x C
    processes.all_reduce_sum(sums)
    partials.zero_()
    partials[..., 0] = sums * (in_chunk.sum(-1) / counts)[:, None]


def keep_running(buffers: tuple[Tensor, Tensor, Tensor], shared: Shared, momentum: float) -> None:
    """Running mean and variance, and how many batches they are of, group by group in order."""
    mean, variance, batches = buffers
    for group in zip(*shared, strict=True):
        of_group, squares, count = (part[: len(mean)] for part in group)
        mean.lerp_(of_group, momentum)
        variance.lerp_(squares / (count - 1), momentum)
        batches += 1


def _rows_of_chunks(rows: Sequence[int], chunk_rows: int, like: Tensor) -> Tensor:
    """G x 1 x F"""
    first = torch.arange(like.shape[-1], device=like.device, dtype=like.dtype) * chunk_rows
    return torch.stack([(n - first).clamp(0, chunk_rows) for n in rows])[:, None]
