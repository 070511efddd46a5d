"""Between the two kernels of a fused norm, one process's numbers become those of all.

The second kernel folds whatever its workspace holds, so it need not know of other processes: every
chunk is given the mean of all, and its share of the squares of all; or the first chunk the sum of
all. Shapes: G copy groups, C channels (padded to whole blocks), F chunks at most, R processes; the
workspace is G x 2 x C x F.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dcdc.networks.shared_norm import merged
from dcdc.runtime.processes import Processes


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
