# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The four Triton kernels of fused_norm.py, which says what each reads and writes."""

import triton
import triton.language as tl

_ENDS = ["end0", "end1", "end2", "end3"]


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
    """Constant along a row where the channels fill the block: 16 bytes are then one load."""
    inside = (row < rows)[:, None]
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


@triton.jit(do_not_specialize=_ENDS)
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
    for tile in range(1, tiles):
        x += block_rows * channels
        inside = _inside(tile * block_rows + row, rows, column, channels, block_channels)
        value = tl.load(x + offset, mask=inside, other=0.0).to(tl.float32)
        away = tl.where(inside, value - mean, 0.0)
        mean += away * (1.0 / (tile + 1))
        squares += away * (value - mean)

    seen = tl.cdiv(rows - row, block_rows).to(tl.float32)[:, None]
    centre = tl.sum(mean * seen, 0) / rows
    away = mean - centre[None, :]
    slip, spread = _sums(away * seen, squares + away * away * seen)
    means, deviations = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(means + chunk, centre + slip / rows)
    tl.store(deviations + chunk, spread - slip * slip / rows)


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


@triton.jit(do_not_specialize=_ENDS)
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
        x += begin * channels
        residual += begin * channels
        y += begin * channels

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
        for tile in range(tiles):
            out = _normalised(value, mean, scale, shift)
            if add:
                out += added.to(tl.float32)
            if relu:
                out = tl.maximum(out, 0.0, tl.PropagateNan.ALL)
            tl.store(y + offset, out, mask=inside)
            x += block_rows * channels
            y += block_rows * channels
            inside = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
            value = tl.load(x + offset, mask=inside, other=0.0)
            if add:
                residual += block_rows * channels
                added = tl.load(residual + offset, mask=inside, other=0.0)


@triton.jit(do_not_specialize=_ENDS)
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


@triton.jit(do_not_specialize=_ENDS)
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
        dy += begin * channels
        x += begin * channels
        dx += begin * channels

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
        level = (of_dy / n)[None, :]
        tilt = (of_product / n * rstd)[None, :]
        for tile in range(tiles):
            if mask_by_x:
                slope = tl.where(_normalised(value, mean, scale, shift) <= 0, 0.0, slope)
            away = value.to(tl.float32) - mean[None, :]
            out = (slope.to(tl.float32) - level - away * tilt) * scale[None, :]
            tl.store(dx + offset, out, mask=inside)
            dy += block_rows * channels
            x += block_rows * channels
            dx += block_rows * channels
            inside = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
            value = tl.load(x + offset, mask=inside, other=0.0)
            slope = tl.load(dy + offset, mask=inside, other=0.0)
