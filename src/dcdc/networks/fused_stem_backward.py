# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The two Triton kernels of the stem's backward pass; fused_stem.py says what they read and write.

Rows are windows of the pool, and `end0` to `end3` count windows.
"""

import triton
import triton.language as tl

from dcdc.networks.fused_norm_parts import (
    ENDS,
    _fold_sums,
    _partials,
    _place,
    _span,
    _sum_of_two,
    _sum_over_groups,
)
from dcdc.networks.fused_stem_parts import (
    _first_window,
    _in_pixels,
    _load_signed,
    _load_weights,
    _load_windows,
    _or_least,
    _pixels_there,
    _product,
)


@triton.jit(do_not_specialize=ENDS)
def _partial_gradients_of_stem(
    dy,
    dy2,
    images,
    filters,
    weight,
    bias,
    statistics,
    partials,
    of_filters,
    end0,
    end1,
    end2,
    end3,
    channels: tl.constexpr,
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    fold: tl.constexpr,
    two: tl.constexpr,
    overlap: tl.constexpr,
):
    """As `_partial_gradients`: each window's gradient belongs to one of its pixels, or to none.

    `of_filters`: per chunk and each of the four, the sums of patch times gradient. Tiles are
    channels x windows here: a product's output can then be a factor of the next one as it is.
    """
    if overlap:
        tl.extra.cuda.gdc_launch_dependents()
    column = tl.arange(0, block_channels)
    known = column < channels
    program = tl.program_id(0)
    group, chunk, begin, rows = _place(program, end0, end1, end2, end3, block_rows * tiles)
    row = tl.arange(0, block_rows)
    offset = row[None, :] * channels + column[:, None]
    dy += begin * channels
    dy2 += begin * channels
    images, window = _first_window(images, begin, depth, height, width)
    statistics += group * 2 * channels
    mean = tl.load(statistics + column, mask=known, other=0.0)
    rstd = tl.load(statistics + channels + column, mask=known, other=0.0)
    scale = tl.load(weight + column, mask=known, other=0.0) * rstd
    shift = tl.load(bias + column, mask=known, other=0.0) - scale * mean
    below = scale < 0
    scale = tl.abs(scale)
    at_a = tl.trans(_load_signed(filters, column, below, channels, 0, 0, depth, reach))
    at_b = tl.trans(_load_signed(filters, column, below, channels, 0, 1, depth, reach))
    at_c = tl.trans(_load_signed(filters, column, below, channels, 1, 0, depth, reach))
    at_d = tl.trans(_load_signed(filters, column, below, channels, 1, 1, depth, reach))
    dtype: tl.constexpr = images.dtype.element_ty
    sums = tl.zeros([block_channels, block_rows], tl.float32)
    of_a = tl.zeros([block_channels, reach], tl.float32)
    of_b = tl.zeros([block_channels, reach], tl.float32)
    of_c = tl.zeros([block_channels, reach], tl.float32)
    of_d = tl.zeros([block_channels, reach], tl.float32)
    for tile in range(tiles):
        inside = tile * block_rows + row < rows
        here = inside[None, :] if channels == block_channels else inside[None, :] & known[:, None]
        slope = tl.load(dy + offset, mask=here, other=0.0)
        if two:
            slope = _sum_of_two(slope, tl.load(dy2 + offset, mask=here, other=0.0))
        patches = _load_windows(images, window + row, inside, depth, height, width, reach)
        upper, lower, before, after = _pixels_there(window + row, height, width)
        across = tl.trans(patches)
        a = _or_least(_product(at_a, across), (upper & before)[None, :])
        b = _or_least(_product(at_b, across), (upper & after)[None, :])
        c = _or_least(_product(at_c, across), (lower & before)[None, :])
        d = _or_least(_product(at_d, across), (lower & after)[None, :])
        of_upper, of_lower = tl.maximum(a, b), tl.maximum(c, d)
        out = tl.maximum(of_upper, of_lower) * scale[:, None] + shift[:, None]
        routed = tl.where(out <= 0, 0.0, slope.to(tl.float32))
        sums += routed
        # Products with 0 and 1 take fewer instructions than selections do, packed in pairs.
        to_upper = routed * (of_upper >= of_lower).to(tl.float32)
        to_lower = routed - to_upper
        to_a, to_c = to_upper * (a >= b).to(tl.float32), to_lower * (c >= d).to(tl.float32)
        of_a += _product(to_a.to(dtype), patches)
        of_b += _product((to_upper - to_a).to(dtype), patches)
        of_c += _product(to_c.to(dtype), patches)
        of_d += _product((to_lower - to_c).to(dtype), patches)
        dy += block_rows * channels
        dy2 += block_rows * channels
        window += block_rows

    part: tl.constexpr = reach * block_channels
    number = tl.arange(0, reach)
    to = of_filters + program * (4 * part) + number[None, :] * block_channels + column[:, None]
    tl.store(to, of_a)
    tl.store(to + part, of_b)
    tl.store(to + 2 * part, of_c)
    tl.store(to + 3 * part, of_d)
    of_dy = tl.sum(sums, 1)
    of_product = -mean * of_dy
    of_product += _in_all(of_a, filters, column, channels, 0, 0, depth, reach)
    of_product += _in_all(of_b, filters, column, channels, 0, 1, depth, reach)
    of_product += _in_all(of_c, filters, column, channels, 1, 0, depth, reach)
    of_product += _in_all(of_d, filters, column, channels, 1, 1, depth, reach)
    one, other = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(one + chunk, of_dy)
    tl.store(other + chunk, of_product * rstd)


@triton.jit
def _in_all(
    of_pixel,
    filters,
    column,
    channels: tl.constexpr,
    i: tl.constexpr,
    j: tl.constexpr,
    depth: tl.constexpr,
    reach: tl.constexpr,
):
    """Sums of gradient times convolved pixel, from those of gradient times patch."""
    weights = tl.trans(_load_weights(filters, column, channels, i, j, 2, depth, reach))
    return tl.sum(of_pixel * weights.to(tl.float32), 1)


@triton.jit
def _fold_moments(
    moments,
    filters,
    mean,
    number,
    group,
    end0,
    end1,
    end2,
    end3,
    channels: tl.constexpr,
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
    block_channels: tl.constexpr,
    pixels: tl.constexpr,
    fold: tl.constexpr,
):
    """Over a group's pixels, sums of a patch's one number, alone and times (convolved - mean)."""
    tall: tl.constexpr = 2 - height % 2
    wide: tl.constexpr = 2 - width % 2
    part: tl.constexpr = (reach + 1) * reach
    _, n, first, chunks = _span(group, end0, end1, end2, end3, pixels)
    chunk = tl.arange(0, fold)
    column = tl.arange(0, block_channels)
    every = tl.arange(0, reach)
    known = (chunk < chunks)[:, None]
    at = moments + (first + chunk)[:, None] * part + every[None, :]
    blocks = tl.minimum(tl.maximum(n - chunk * pixels, 0), pixels) // (tall * wide)
    share = blocks.to(tl.float32)[:, None]
    blocks = n // (tall * wide)
    averages = tl.load(at + reach * reach, mask=known, other=0.0)
    average = tl.sum(averages * share, 0) / blocks
    away = tl.where(known, averages - average[None, :], 0.0)
    alone = 0.0
    with_value = tl.zeros([block_channels], tl.float32)
    for i in tl.static_range(tall):
        for j in tl.static_range(wide):
            place = _place_of(number, i, j, wide, depth)
            own = tl.sum(tl.where(every[None, :] == place, away, 0.0), 1)
            deviations = tl.load(at + place * reach, mask=known, other=0.0)
            deviations = tl.sum(deviations + own[:, None] * share * away, 0)
            weights = _load_weights(filters, column, channels, i, j, wide, depth, reach)
            weights = weights.to(tl.float32)
            total = tl.sum(tl.where(every == place, average, 0.0), 0) * blocks
            alone += total
            with_value += tl.sum(weights * deviations[:, None], 0)
            with_value += (tl.sum(weights * average[:, None], 0) - mean) * total
    return alone, with_value


@triton.jit
def _place_of(number, i: tl.constexpr, j: tl.constexpr, wide: tl.constexpr, depth: tl.constexpr):
    """Of one of a filter's numbers, for pixel (i, j) of a block, in the block's patch."""
    down, across = number // (3 * depth) + i, number // depth % 3 + j
    return (down * (wide + 2) + across) * depth + number % depth


@triton.jit
def _fold_parts(
    of_filters,
    number,
    first,
    chunks,
    depth: tl.constexpr,
    reach: tl.constexpr,
    block_channels: tl.constexpr,
):
    """Over chunks and the four pixels: sums of a patch's one number times gradient."""
    part: tl.constexpr = reach * block_channels
    step: tl.constexpr = 64
    column = tl.arange(0, block_channels)
    chunk = tl.arange(0, step)
    total = tl.zeros([step, block_channels], tl.float32)
    for begin in range(0, chunks, step):
        here = begin + chunk
        at = of_filters + (first + here)[:, None] * (4 * part) + column[None, :]
        for i in tl.static_range(2):
            for j in tl.static_range(2):
                place = (i * 2 + j) * reach + _place_of(number, i, j, 2, depth)
                known = (here < chunks)[:, None]
                total += tl.load(at + place * block_channels, mask=known, other=0.0)
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=ENDS)
def _fold_filter_gradients(
    of_filters,
    moments,
    filters,
    weight,
    statistics,
    partials,
    d_filters,
    d_weight,
    d_bias,
    end0,
    end1,
    end2,
    end3,
    groups: tl.constexpr,
    channels: tl.constexpr,
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    pixels: tl.constexpr,
    pixel_reach: tl.constexpr,
    pixel_fold: tl.constexpr,
    fold: tl.constexpr,
    overlap: tl.constexpr,
):
    """The first program sums over groups; each other has one of a filter's numbers.

    `pixels`, `pixel_reach` and `pixel_fold`: of the kernel that left the moments.
    """
    chunk_rows: tl.constexpr = block_rows * tiles
    program = tl.program_id(0)
    column = tl.arange(0, block_channels)
    known = column < channels
    if program == 0:
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
        number = program - 1
        pixel_end0 = _in_pixels(end0, height, width)
        pixel_end1 = _in_pixels(end1, height, width)
        pixel_end2 = _in_pixels(end2, height, width)
        pixel_end3 = _in_pixels(end3, height, width)
        if overlap:
            tl.extra.cuda.gdc_wait()
        gradient = tl.zeros([block_channels], tl.float32)
        for group in range(groups):
            at = statistics + group * 2 * channels + column
            mean = tl.load(at, mask=known, other=0.0)
            rstd = tl.load(at + channels, mask=known, other=0.0)
            alone, with_value = _fold_moments(
                moments,
                filters,
                mean,
                number,
                group,
                pixel_end0,
                pixel_end1,
                pixel_end2,
                pixel_end3,
                channels,
                depth,
                height,
                width,
                pixel_reach,
                block_channels,
                pixels,
                pixel_fold,
            )
            _, windows, first, chunks = _span(group, end0, end1, end2, end3, chunk_rows)
            n = _in_pixels(windows, height, width)
            one, other = _partials(partials, group, column, channels, block_channels, fold)
            of_dy, of_product = _fold_sums(one, other, chunks, fold)
            of_group = _fold_parts(of_filters, number, first, chunks, depth, reach, block_channels)
            of_group -= of_dy / n * alone + of_product / n * rstd * with_value
            gradient += of_group * rstd
        gradient *= tl.load(weight + column, mask=known, other=0.0)
        tl.store(d_filters + column * (9 * depth) + number, gradient, mask=known)
