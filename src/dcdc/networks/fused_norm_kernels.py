# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The four Triton kernels of fused_norm.py, which says what each reads and writes.

The forward ones ask for the next tile before they work on the one they have. The backward ones hold
more of them, and are no faster so.
"""

import triton
import triton.language as tl

from dcdc.networks.fused_norm_parts import (
    ENDS,
    _fold_statistics,
    _fold_sums,
    _gradient,
    _inside,
    _normalised,
    _partials,
    _place,
    _span,
    _sum_of_two,
    _sum_over_groups,
    _sums,
    _update_running,
)


@triton.jit(do_not_specialize=ENDS)
def _partial_statistics(
    x,
    partials,
    end0,
    end1,
    end2,
    end3,
    channels: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    fold: tl.constexpr,
    overlap: tl.constexpr,
):
    """A chunk's mean and sum of squared deviations: Welford's update in every lane, then merged."""
    if overlap:
        tl.extra.cuda.gdc_launch_dependents()
    columns: tl.constexpr = (channels + block_channels - 1) // block_channels
    chunk = tl.program_id(0) // columns
    column = tl.program_id(0) % columns * block_channels + tl.arange(0, block_channels)
    group, chunk, begin, rows = _place(chunk, end0, end1, end2, end3, block_rows * tiles)
    row = tl.arange(0, block_rows)
    offset = row[:, None] * channels + column[None, :]
    x += begin * channels

    inside = _inside(row, rows, column, channels, block_channels)
    mean = tl.load(x + offset, mask=inside, other=0.0).to(tl.float32)
    squares = tl.zeros([block_rows, block_channels], tl.float32)
    x += block_rows * channels
    inside = _inside(block_rows + row, rows, column, channels, block_channels)
    value = tl.load(x + offset, mask=inside, other=0.0)
    for tile in range(1, tiles):
        x += block_rows * channels
        is_next = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
        next_value = tl.load(x + offset, mask=is_next, other=0.0)
        away = tl.where(inside, value.to(tl.float32) - mean, 0.0)
        mean += away * (1.0 / (tile + 1))
        squares += away * (value.to(tl.float32) - mean)
        value, inside = next_value, is_next

    seen = tl.cdiv(rows - row, block_rows).to(tl.float32)[:, None]
    centre = tl.sum(mean * seen, 0) / rows
    away = mean - centre[None, :]
    slip, spread = _sums(away * seen, squares + away * away * seen)
    means, deviations = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(means + chunk, centre + slip / rows)
    tl.store(deviations + chunk, spread - slip * slip / rows)


@triton.jit(do_not_specialize=ENDS)
def _apply(
    x,
    residual,
    y,
    weight,
    bias,
    running_mean,
    running_var,
    batches,
    partials,
    statistics,
    momentum,
    eps,
    end0,
    end1,
    end2,
    end3,
    groups: tl.constexpr,
    channels: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    fold: tl.constexpr,
    add: tl.constexpr,
    relu: tl.constexpr,
    overlap: tl.constexpr,
):
    """The first programs, one per block of channels, keep running statistics; the rest write y."""
    columns: tl.constexpr = (channels + block_channels - 1) // block_channels
    chunk_rows: tl.constexpr = block_rows * tiles
    program = tl.program_id(0)
    column = program % columns * block_channels + tl.arange(0, block_channels)
    known = column < channels
    if program < columns:
        _update_running(
            running_mean,
            running_var,
            batches,
            partials,
            momentum,
            end0,
            end1,
            end2,
            end3,
            groups,
            channels,
            block_channels,
            chunk_rows,
            fold,
            overlap,
        )
    else:
        chunk = program // columns - 1
        group, chunk, begin, rows = _place(chunk, end0, end1, end2, end3, chunk_rows)
        row = tl.arange(0, block_rows)
        offset = row[:, None] * channels + column[None, :]
        begin += (tiles - 1) * block_rows
        x += begin * channels
        residual += begin * channels
        y += begin * channels

        row += (tiles - 1) * block_rows
        inside = _inside(row, rows, column, channels, block_channels)
        value = tl.load(x + offset, mask=inside, other=0.0)
        if add:
            added = tl.load(residual + offset, mask=inside, other=0.0)
        scale = tl.load(weight + column, mask=known, other=0.0)
        shift = tl.load(bias + column, mask=known, other=0.0)
        if overlap:
            tl.extra.cuda.gdc_wait()
        _, n, _, chunks = _span(group, end0, end1, end2, end3, chunk_rows)
        one, other = _partials(partials, group, column, channels, block_channels, fold)
        mean, var = _fold_statistics(one, other, chunks, n, chunk_rows, fold)
        rstd = tl.rsqrt(var + eps)
        if chunk == 0:
            tl.store(statistics + group * 2 * channels + column, mean, mask=known)
            tl.store(statistics + (group * 2 + 1) * channels + column, rstd, mask=known)
        scale *= rstd
        for _ in range(tiles):  # backwards: what the first kernel read last is still in the cache
            x -= block_rows * channels
            row -= block_rows
            is_next = _inside(row, rows, column, channels, block_channels)
            next_value = tl.load(x + offset, mask=is_next, other=0.0)
            if add:
                residual -= block_rows * channels
                next_added = tl.load(residual + offset, mask=is_next, other=0.0)
            out = _normalised(value, mean, scale, shift)
            if add:
                out += added.to(tl.float32)
                added = next_added
            if relu:
                out = tl.maximum(out, 0.0, tl.PropagateNan.ALL)
            tl.store(y + offset, out, mask=inside)
            y -= block_rows * channels
            value, inside = next_value, is_next


@triton.jit(do_not_specialize=ENDS)
def _partial_gradients(
    dy,
    dy2,
    x,
    y,
    open_dy,
    weight,
    bias,
    statistics,
    partials,
    end0,
    end1,
    end2,
    end3,
    channels: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    fold: tl.constexpr,
    two: tl.constexpr,
    mask_by_x: tl.constexpr,
    mask_by_y: tl.constexpr,
    overlap: tl.constexpr,
):
    """A chunk's sums of dy and of dy * normalised x, dy being 0 where the ReLU was closed.

    `two`: dy is the sum of dy and dy2.
    """
    if overlap:
        tl.extra.cuda.gdc_launch_dependents()
    columns: tl.constexpr = (channels + block_channels - 1) // block_channels
    chunk = tl.program_id(0) // columns
    column = tl.program_id(0) % columns * block_channels + tl.arange(0, block_channels)
    known = column < channels
    group, chunk, begin, rows = _place(chunk, end0, end1, end2, end3, block_rows * tiles)
    row = tl.arange(0, block_rows)
    offset = row[:, None] * channels + column[None, :]
    dy += begin * channels
    dy2 += begin * channels
    x += begin * channels
    y += begin * channels
    open_dy += begin * channels

    inside = _inside(row, rows, column, channels, block_channels)
    slope = tl.load(dy + offset, mask=inside, other=0.0)
    if two:
        slope2 = tl.load(dy2 + offset, mask=inside, other=0.0)
    value = tl.load(x + offset, mask=inside, other=0.0)
    if mask_by_y:
        out = tl.load(y + offset, mask=inside, other=0.0)
    statistics += group * 2 * channels
    mean = tl.load(statistics + column, mask=known, other=0.0)
    rstd = tl.load(statistics + channels + column, mask=known, other=0.0)
    scale = tl.load(weight + column, mask=known, other=0.0) * rstd
    shift = tl.load(bias + column, mask=known, other=0.0)
    sums = tl.zeros([block_rows, block_channels], tl.float32)
    products = tl.zeros([block_rows, block_channels], tl.float32)
    for tile in range(tiles):
        if two:
            slope = _sum_of_two(slope, slope2)
        if mask_by_x:
            slope = tl.where(_normalised(value, mean, scale, shift) <= 0, 0.0, slope)
        if mask_by_y:
            slope = tl.where(out <= 0, 0.0, slope)
        if two or mask_by_y:
            tl.store(open_dy + offset, slope, mask=inside)
            open_dy += block_rows * channels
        sums += slope.to(tl.float32)
        products += slope.to(tl.float32) * (value.to(tl.float32) - mean[None, :])
        dy += block_rows * channels
        x += block_rows * channels
        inside = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
        slope = tl.load(dy + offset, mask=inside, other=0.0)
        if two:
            dy2 += block_rows * channels
            slope2 = tl.load(dy2 + offset, mask=inside, other=0.0)
        value = tl.load(x + offset, mask=inside, other=0.0)
        if mask_by_y:
            y += block_rows * channels
            out = tl.load(y + offset, mask=inside, other=0.0)

    of_dy, of_product = _sums(sums, products)
    one, other = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(one + chunk, of_dy)
    tl.store(other + chunk, of_product * rstd)


@triton.jit(do_not_specialize=ENDS)
def _input_gradient(
    dy,
    x,
    dx,
    weight,
    bias,
    statistics,
    partials,
    d_weight,
    d_bias,
    end0,
    end1,
    end2,
    end3,
    groups: tl.constexpr,
    channels: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    fold: tl.constexpr,
    mask_by_x: tl.constexpr,
    await_dy: tl.constexpr,
    overlap: tl.constexpr,
):
    """The first programs, one per block of channels, sum over groups; the others write dx."""
    columns: tl.constexpr = (channels + block_channels - 1) // block_channels
    chunk_rows: tl.constexpr = block_rows * tiles
    program = tl.program_id(0)
    column = program % columns * block_channels + tl.arange(0, block_channels)
    known = column < channels
    if program < columns:
        _sum_over_groups(
            d_weight,
            d_bias,
            partials,
            end0,
            end1,
            end2,
            end3,
            groups,
            channels,
            block_channels,
            chunk_rows,
            fold,
            overlap,
        )
    else:
        chunk = program // columns - 1
        group, chunk, begin, rows = _place(chunk, end0, end1, end2, end3, chunk_rows)
        row = tl.arange(0, block_rows)
        offset = row[:, None] * channels + column[None, :]
        begin += (tiles - 1) * block_rows
        dy += begin * channels
        x += begin * channels
        dx += begin * channels

        row += (tiles - 1) * block_rows
        inside = _inside(row, rows, column, channels, block_channels)
        value = tl.load(x + offset, mask=inside, other=0.0)
        statistics += group * 2 * channels
        mean = tl.load(statistics + column, mask=known, other=0.0)
        rstd = tl.load(statistics + channels + column, mask=known, other=0.0)
        scale = tl.load(weight + column, mask=known, other=0.0) * rstd
        shift = tl.load(bias + column, mask=known, other=0.0)
        if overlap and await_dy:  # it is then what the kernel before writes
            tl.extra.cuda.gdc_wait()
        slope = tl.load(dy + offset, mask=inside, other=0.0)
        if overlap and not await_dy:
            tl.extra.cuda.gdc_wait()
        _, n, _, chunks = _span(group, end0, end1, end2, end3, chunk_rows)
        one, other = _partials(partials, group, column, channels, block_channels, fold)
        of_dy, of_product = _fold_sums(one, other, chunks, fold)
        level = of_dy / n
        tilt = of_product / n * rstd
        for _ in range(tiles):  # backwards, as above
            if mask_by_x:
                slope = tl.where(_normalised(value, mean, scale, shift) <= 0, 0.0, slope)
            out = _gradient(slope, value, mean, level, tilt, scale)
            tl.store(dx + offset, out, mask=inside)
            dy -= block_rows * channels
            x -= block_rows * channels
            dx -= block_rows * channels
            row -= block_rows
            inside = _inside(row, rows, column, channels, block_channels)
            value = tl.load(x + offset, mask=inside, other=0.0)
            slope = tl.load(dy + offset, mask=inside, other=0.0)
