# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""What the kernels of fused_norm.py and fused_stem.py share."""

import triton
import triton.language as tl

ENDS = ["end0", "end1", "end2", "end3"]


@triton.jit
def _span(group, end0, end1, end2, end3, chunk_rows: tl.constexpr):
    """A group's first row, its rows, its first chunk and its chunks."""
    last0 = tl.cdiv(end0, chunk_rows)
    last1 = last0 + tl.cdiv(end1 - end0, chunk_rows)
    last2 = last1 + tl.cdiv(end2 - end1, chunk_rows)
    begin = tl.where(group == 0, 0, tl.where(group == 1, end0, tl.where(group == 2, end1, end2)))
    end = tl.where(group == 0, end0, tl.where(group == 1, end1, tl.where(group == 2, end2, end3)))
    first = tl.where(group == 0, 0, tl.where(group == 1, last0, tl.where(group == 2, last1, last2)))
    return begin, end - begin, first, tl.cdiv(end - begin, chunk_rows)


@triton.jit
def _place(chunk, end0, end1, end2, end3, chunk_rows: tl.constexpr):
    """A chunk's group, its place there, its first row and its rows."""
    last0 = tl.cdiv(end0, chunk_rows)
    last1 = last0 + tl.cdiv(end1 - end0, chunk_rows)
    last2 = last1 + tl.cdiv(end2 - end1, chunk_rows)
    after = (chunk >= last0).to(tl.int32) + (chunk >= last1).to(tl.int32)
    group = after + (chunk >= last2).to(tl.int32)
    begin, rows, first, _ = _span(group, end0, end1, end2, end3, chunk_rows)
    chunk -= first
    skipped = chunk * chunk_rows
    return group, chunk, (begin + skipped).to(tl.int64), tl.minimum(rows - skipped, chunk_rows)


@triton.jit
def _inside(row, rows, column, channels: tl.constexpr, block_channels: tl.constexpr):
    """Constant along a row where the channels fill the block: 16 bytes are then one load.

    A kernel that goes backwards asks for the tile before its first one too: that has rows below 0.
    """
    inside = ((row >= 0) & (row < rows))[:, None]
    if channels % block_channels != 0:
        inside = inside & (column < channels)[None, :]
    return inside


@triton.jit
def _sums(one, other):
    """Two sums over rows for one round of barriers."""
    return tl.split(tl.sum(tl.join(one, other), 0))


@triton.jit
def _partials(
    partials,
    group,
    column,
    channels: tl.constexpr,
    block_channels: tl.constexpr,
    fold: tl.constexpr,
):
    """Where a group's two numbers per chunk lie: groups x 2 x whole blocks of channels x fold."""
    padded: tl.constexpr = (channels + block_channels - 1) // block_channels * block_channels
    one = partials + (group * 2 * padded + column) * fold
    return one, one + padded * fold


@triton.jit
def _load_partials(one, other, chunks, fold: tl.constexpr):
    """Chunks lie side by side, so that a warp folds a channel without the others."""
    chunk = tl.arange(0, fold)[None, :]
    inside = chunk < tl.cdiv(chunks, 4) * 4
    one = tl.load(one[:, None] + chunk, mask=inside)
    other = tl.load(other[:, None] + chunk, mask=inside)
    return tl.where(chunk < chunks, one, 0.0), tl.where(chunk < chunks, other, 0.0)


@triton.jit
def _fold_statistics(one, other, chunks, rows, chunk_rows: tl.constexpr, fold: tl.constexpr):
    """A group's mean and biased variance from its chunks' means and squared deviations."""
    means, squares = _load_partials(one, other, chunks, fold)
    left = rows - tl.arange(0, fold) * chunk_rows
    weight = (tl.minimum(tl.maximum(left, 0), chunk_rows).to(tl.float32) / rows)[None, :]
    mean = tl.sum(means * weight, 1)
    away = means - mean[:, None]
    slip = tl.sum(away * weight, 1)
    var = tl.sum(squares / rows + away * away * weight, 1) - slip * slip
    return mean + slip, tl.maximum(var, 0.0, tl.PropagateNan.ALL)


@triton.jit
def _fold_sums(one, other, chunks, fold: tl.constexpr):
    one, other = _load_partials(one, other, chunks, fold)
    return tl.sum(one, 1), tl.sum(other, 1)


@triton.jit
def _normalised(value, mean, scale, shift):
    return (value.to(tl.float32) - mean[None, :]) * scale[None, :] + shift[None, :]


@triton.jit
def _sum_of_two(one, other):
    """Rounded as a tensor of sums would be: both backward kernels then see the same numbers."""
    return (one.to(tl.float32) + other.to(tl.float32)).to(one.dtype)


@triton.jit
def _gradient(slope, value, mean, level, tilt, scale):
    """Of a pixel before the norm: level and tilt are what its group's statistics take back."""
    away = value.to(tl.float32) - mean[None, :]
    return (slope.to(tl.float32) - level[None, :] - away * tilt[None, :]) * scale[None, :]


@triton.jit
def _update_running(
    running_mean,
    running_var,
    batches,
    partials,
    momentum,
    end0,
    end1,
    end2,
    end3,
    groups: tl.constexpr,
    channels: tl.constexpr,
    block_channels: tl.constexpr,
    chunk_rows: tl.constexpr,
    fold: tl.constexpr,
    overlap: tl.constexpr,
):
    """Once per group and in order, as a pass for each group would."""
    column = tl.program_id(0) * block_channels + tl.arange(0, block_channels)
    known = column < channels
    average = tl.load(running_mean + column, mask=known, other=0.0)
    spread = tl.load(running_var + column, mask=known, other=0.0)
    if overlap:
        tl.extra.cuda.gdc_wait()
    for group in tl.static_range(groups):
        _, n, _, chunks = _span(group, end0, end1, end2, end3, chunk_rows)
        one, other = _partials(partials, group, column, channels, block_channels, fold)
        mean, var = _fold_statistics(one, other, chunks, n, chunk_rows, fold)
        average = average * (1 - momentum) + mean * momentum
        spread = spread * (1 - momentum) + var * (n.to(tl.float32) / (n - 1)) * momentum
    tl.store(running_mean + column, average, mask=known)
    tl.store(running_var + column, spread, mask=known)
    if tl.program_id(0) == 0:
        tl.store(batches, tl.load(batches) + groups)


@triton.jit
def _sum_over_groups(
    d_weight,
    d_bias,
    partials,
    end0,
    end1,
    end2,
    end3,
    groups: tl.constexpr,
    channels: tl.constexpr,
    block_channels: tl.constexpr,
    chunk_rows: tl.constexpr,
    fold: tl.constexpr,
    overlap: tl.constexpr,
):
    column = tl.program_id(0) * block_channels + tl.arange(0, block_channels)
    known = column < channels
    if overlap:
        tl.extra.cuda.gdc_wait()
    sums = tl.zeros([block_channels], tl.float32)
    products = tl.zeros([block_channels], tl.float32)
    for group in tl.static_range(groups):
        _, _, _, chunks = _span(group, end0, end1, end2, end3, chunk_rows)
        one, other = _partials(partials, group, column, channels, block_channels, fold)
        of_dy, of_product = _fold_sums(one, other, chunks, fold)
        sums += of_dy
        products += of_product
    tl.store(d_bias + column, sums, mask=known)
    tl.store(d_weight + column, products, mask=known)
