# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The five Triton kernels of fused_stem.py, which says what each reads and writes.

A row of a tile is a window of the pool, and `end0` to `end3` count windows; in the first kernel
both are pixels. The four pixels of a window, in reading order, are a, b, c and d. All that their
convolutions read is one patch of 4 x 4 pixels: a row of `reach` numbers, in a product with the
weights of each of the four, laid out as the patch is. Windows at the border lack some pixels.
"""

import triton
import triton.language as tl

from dcdc.networks.fused_norm_parts import (
    ENDS,
    _fold_statistics,
    _fold_sums,
    _gradient,
    _normalised,
    _partials,
    _place,
    _span,
    _sum_of_two,
    _sum_over_groups,
    _sums,
    _update_running,
)


@triton.jit
def _in_pixels(windows, height: tl.constexpr, width: tl.constexpr):
    """As many images' pixels."""
    return windows // ((height // 2 + 1) * (width // 2 + 1)) * (height * width)


@triton.jit
def _load_patches(
    images,
    image,
    top,
    left,
    inside,
    side: tl.constexpr,
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
):
    """Of `side` x `side` pixels of `depth` channels from (top, left) on; 0 beyond the image."""
    number = tl.arange(0, reach)
    down = top[:, None] + (number // (side * depth))[None, :]
    across = left[:, None] + (number // depth % side)[None, :]
    there = inside[:, None] & (number < side * side * depth)[None, :]
    there = there & (down >= 0) & (down < height) & (across >= 0) & (across < width)
    at = ((image[:, None] * height + down) * width + across) * depth + (number % depth)[None, :]
    return tl.load(images + at, mask=there, other=0.0)


@triton.jit
def _load_weights(
    filters,
    column,
    channels: tl.constexpr,
    i: tl.constexpr,
    j: tl.constexpr,
    side: tl.constexpr,
    depth: tl.constexpr,
    reach: tl.constexpr,
):
    """Of the 3 x 3 convolution at pixel (i, j) inside a patch: reach x channels."""
    number = tl.arange(0, reach)
    down = number // (side * depth) - i
    across = number // depth % side - j
    there = (down >= 0) & (down < 3) & (across >= 0) & (across < 3)
    there = there & (number < side * side * depth)
    at = (down * 3 + across) * depth + number % depth
    known = there[:, None] & (column < channels)[None, :]
    return tl.load(filters + at[:, None] + (column * 9 * depth)[None, :], mask=known, other=0.0)


@triton.jit
def _product(patches, weights):
    """As the convolution's output tensor would hold it."""
    return tl.dot(patches, weights, input_precision="ieee").to(weights.dtype)


@triton.jit
def _load_windows(
    images,
    window,
    inside,
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
):
    """The windows' patches, and which of the four pixels the image has."""
    high: tl.constexpr = height // 2 + 1
    wide: tl.constexpr = width // 2 + 1
    image = (window // (high * wide)).to(tl.int64)
    top = window // wide % high * 2 - 1
    left = window % wide * 2 - 1
    patches = _load_patches(
        images, image, top - 1, left - 1, inside, 4, depth, height, width, reach
    )
    upper, lower = inside & (top >= 0), inside & (top + 1 < height)
    before, after = left >= 0, left + 1 < width
    return (
        patches,
        (upper & before)[:, None],
        (upper & after)[:, None],
        (lower & before)[:, None],
        (lower & after)[:, None],
    )


@triton.jit
def _held(value, inside, mean, scale, shift):
    """The norm's output as a tensor would hold it, where values that differ may be one; or -inf."""
    out = _normalised(value, mean, scale, shift).to(value.dtype).to(tl.float32)
    return tl.where(inside, out, float("-inf"))


@triton.jit
def _larger(most, pick, value, other, inside, number: tl.constexpr, mean, scale, shift):
    """As PyTorch's pool goes on from pixel to pixel: a NaN is larger than all."""
    out = _held(other, inside, mean, scale, shift)
    larger = (out > most) | (out != out)
    most = tl.where(larger, out, most)
    return most, tl.where(larger, number, pick), tl.where(larger, other, value)


@triton.jit
def _first_largest(a, b, c, d, in_a, in_b, in_c, in_d, mean, scale, shift):
    """Which pixel the pool takes, 0 to 3 or -1 where the ReLU is closed, and its value."""
    most = _held(a, in_a, mean, scale, shift)
    pick = tl.zeros(most.shape, tl.int32)
    most, pick, value = _larger(most, pick, a, b, in_b, 1, mean, scale, shift)
    most, pick, value = _larger(most, pick, value, c, in_c, 2, mean, scale, shift)
    most, pick, value = _larger(most, pick, value, d, in_d, 3, mean, scale, shift)
    return tl.where(most <= 0, -1, pick), value


@triton.jit(do_not_specialize=ENDS)
def _partial_statistics_of_stem(
    images,
    filters,
    partials,
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
    overlap: tl.constexpr,
):
    """As `_partial_statistics`, of convolved pixels that are never written."""
    if overlap:
        tl.extra.cuda.gdc_launch_dependents()
    column = tl.arange(0, block_channels)
    group, chunk, begin, rows = _place(tl.program_id(0), end0, end1, end2, end3, block_rows * tiles)
    row = tl.arange(0, block_rows)
    weights = _load_weights(filters, column, channels, 0, 0, 3, depth, reach)
    mean = tl.zeros([block_rows, block_channels], tl.float32)
    squares = tl.zeros([block_rows, block_channels], tl.float32)
    for tile in range(tiles):
        inside = tile * block_rows + row < rows
        pixel = begin.to(tl.int32) + tile * block_rows + row
        image = (pixel // (height * width)).to(tl.int64)
        patches = _load_patches(
            images,
            image,
            pixel // width % height - 1,
            pixel % width - 1,
            inside,
            3,
            depth,
            height,
            width,
            reach,
        )
        value = _product(patches, weights).to(tl.float32)
        away = tl.where(inside[:, None], value - mean, 0.0)
        mean += away * (1.0 / (tile + 1))
        squares += away * (value - mean)

    seen = tl.cdiv(rows - row, block_rows).to(tl.float32)[:, None]
    centre = tl.sum(mean * seen, 0) / rows
    away = mean - centre[None, :]
    slip, spread = _sums(away * seen, squares + away * away * seen)
    means, deviations = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(means + chunk, centre + slip / rows)
    tl.store(deviations + chunk, spread - slip * slip / rows)


@triton.jit(do_not_specialize=ENDS)
def _convolve_apply_and_pool(
    images,
    filters,
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
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    pixels: tl.constexpr,
    fold: tl.constexpr,
    overlap: tl.constexpr,
):
    """The first program keeps running statistics, the rest write the largest of each window.

    `pixels`: of a chunk of the kernel before.
    """
    program = tl.program_id(0)
    column = tl.arange(0, block_channels)
    known = column < channels
    pixel_end0 = _in_pixels(end0, height, width)
    pixel_end1 = _in_pixels(end1, height, width)
    pixel_end2 = _in_pixels(end2, height, width)
    pixel_end3 = _in_pixels(end3, height, width)
    if program == 0:
        _update_running(
            running_mean,
            running_var,
            batches,
            partials,
            momentum,
            pixel_end0,
            pixel_end1,
            pixel_end2,
            pixel_end3,
            groups,
            channels,
            block_channels,
            pixels,
            fold,
            overlap,
        )
    else:
        group, chunk, begin, rows = _place(program - 1, end0, end1, end2, end3, block_rows * tiles)
        row = tl.arange(0, block_rows)
        offset = row[:, None] * channels + column[None, :]
        window = begin.to(tl.int32) + row
        y += begin * channels
        at_a = _load_weights(filters, column, channels, 0, 0, 4, depth, reach)
        at_b = _load_weights(filters, column, channels, 0, 1, 4, depth, reach)
        at_c = _load_weights(filters, column, channels, 1, 0, 4, depth, reach)
        at_d = _load_weights(filters, column, channels, 1, 1, 4, depth, reach)
        scale = tl.load(weight + column, mask=known, other=0.0)
        shift = tl.load(bias + column, mask=known, other=0.0)
        if overlap:
            tl.extra.cuda.gdc_wait()
        _, n, _, chunks = _span(group, pixel_end0, pixel_end1, pixel_end2, pixel_end3, pixels)
        one, other = _partials(partials, group, column, channels, block_channels, fold)
        mean, var = _fold_statistics(one, other, chunks, n, pixels, fold)
        rstd = tl.rsqrt(var + eps)
        if chunk == 0:
            tl.store(statistics + group * 2 * channels + column, mean, mask=known)
            tl.store(statistics + (group * 2 + 1) * channels + column, rstd, mask=known)
        scale *= rstd
        nan: tl.constexpr = tl.PropagateNan.ALL
        for tile in range(tiles):
            inside = tile * block_rows + row < rows
            patches, in_a, in_b, in_c, in_d = _load_windows(
                images, window, inside, depth, height, width, reach
            )
            upper = tl.maximum(
                _held(_product(patches, at_a), in_a, mean, scale, shift),
                _held(_product(patches, at_b), in_b, mean, scale, shift),
                nan,
            )
            lower = tl.maximum(
                _held(_product(patches, at_c), in_c, mean, scale, shift),
                _held(_product(patches, at_d), in_d, mean, scale, shift),
                nan,
            )
            out = tl.maximum(tl.maximum(upper, lower, nan), 0.0, nan)
            tl.store(y + offset, out, mask=inside[:, None] & known[None, :])
            y += block_rows * channels
            window += block_rows


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
    """As `_partial_gradients`: each window's gradient belongs to one of its pixels, or to none."""
    if overlap:
        tl.extra.cuda.gdc_launch_dependents()
    column = tl.arange(0, block_channels)
    known = column < channels
    group, chunk, begin, rows = _place(tl.program_id(0), end0, end1, end2, end3, block_rows * tiles)
    row = tl.arange(0, block_rows)
    offset = row[:, None] * channels + column[None, :]
    window = begin.to(tl.int32) + row
    dy += begin * channels
    dy2 += begin * channels
    at_a = _load_weights(filters, column, channels, 0, 0, 4, depth, reach)
    at_b = _load_weights(filters, column, channels, 0, 1, 4, depth, reach)
    at_c = _load_weights(filters, column, channels, 1, 0, 4, depth, reach)
    at_d = _load_weights(filters, column, channels, 1, 1, 4, depth, reach)
    statistics += group * 2 * channels
    mean = tl.load(statistics + column, mask=known, other=0.0)
    rstd = tl.load(statistics + channels + column, mask=known, other=0.0)
    scale = tl.load(weight + column, mask=known, other=0.0) * rstd
    shift = tl.load(bias + column, mask=known, other=0.0)
    sums = tl.zeros([block_rows, block_channels], tl.float32)
    products = tl.zeros([block_rows, block_channels], tl.float32)
    for tile in range(tiles):
        inside = tile * block_rows + row < rows
        here = inside[:, None] & known[None, :]
        slope = tl.load(dy + offset, mask=here, other=0.0)
        if two:
            slope = _sum_of_two(slope, tl.load(dy2 + offset, mask=here, other=0.0))
        patches, in_a, in_b, in_c, in_d = _load_windows(
            images, window, inside, depth, height, width, reach
        )
        a, b = _product(patches, at_a), _product(patches, at_b)
        c, d = _product(patches, at_c), _product(patches, at_d)
        pick, value = _first_largest(a, b, c, d, in_a, in_b, in_c, in_d, mean, scale, shift)
        slope = tl.where(pick < 0, 0.0, slope).to(tl.float32)
        sums += slope
        products += slope * (value.to(tl.float32) - mean[None, :])
        dy += block_rows * channels
        dy2 += block_rows * channels
        window += block_rows

    of_dy, of_product = _sums(sums, products)
    one, other = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(one + chunk, of_dy)
    tl.store(other + chunk, of_product * rstd)


@triton.jit
def _weigh(patches, slope, value, inside, mean, level, tilt, scale):
    """What one pixel of each window adds to the filters' gradient: reach x channels."""
    gradient = _gradient(slope, value, mean, level, tilt, scale)
    gradient = tl.where(inside, gradient, 0.0).to(value.dtype)
    return tl.dot(tl.trans(patches), gradient, input_precision="ieee")


@triton.jit(do_not_specialize=ENDS)
def _partial_filter_gradients(
    dy,
    dy2,
    images,
    filters,
    weight,
    bias,
    statistics,
    partials,
    d_weight,
    d_bias,
    of_filters,
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
    fold: tl.constexpr,
    two: tl.constexpr,
    overlap: tl.constexpr,
):
    """The first program sums over groups; each other leaves its part of the filters' gradient.

    The convolved pixels' own gradient, four tiles at a time, is never written.
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
        group, _, begin, rows = _place(program - 1, end0, end1, end2, end3, chunk_rows)
        row = tl.arange(0, block_rows)
        offset = row[:, None] * channels + column[None, :]
        window = begin.to(tl.int32) + row
        dy += begin * channels
        dy2 += begin * channels
        at_a = _load_weights(filters, column, channels, 0, 0, 4, depth, reach)
        at_b = _load_weights(filters, column, channels, 0, 1, 4, depth, reach)
        at_c = _load_weights(filters, column, channels, 1, 0, 4, depth, reach)
        at_d = _load_weights(filters, column, channels, 1, 1, 4, depth, reach)
        statistics += group * 2 * channels
        mean = tl.load(statistics + column, mask=known, other=0.0)
        rstd = tl.load(statistics + channels + column, mask=known, other=0.0)
        scale = tl.load(weight + column, mask=known, other=0.0) * rstd
        shift = tl.load(bias + column, mask=known, other=0.0)
        if overlap:
            tl.extra.cuda.gdc_wait()
        _, windows, _, chunks = _span(group, end0, end1, end2, end3, chunk_rows)
        n = _in_pixels(windows, height, width)
        one, other = _partials(partials, group, column, channels, block_channels, fold)
        of_dy, of_product = _fold_sums(one, other, chunks, fold)
        level = of_dy / n
        tilt = of_product / n * rstd
        of_a = tl.zeros([reach, block_channels], tl.float32)
        of_b = tl.zeros([reach, block_channels], tl.float32)
        of_c = tl.zeros([reach, block_channels], tl.float32)
        of_d = tl.zeros([reach, block_channels], tl.float32)
        for tile in range(tiles):
            inside = tile * block_rows + row < rows
            here = inside[:, None] & known[None, :]
            slope = tl.load(dy + offset, mask=here, other=0.0)
            if two:
                slope = _sum_of_two(slope, tl.load(dy2 + offset, mask=here, other=0.0))
            patches, in_a, in_b, in_c, in_d = _load_windows(
                images, window, inside, depth, height, width, reach
            )
            a, b = _product(patches, at_a), _product(patches, at_b)
            c, d = _product(patches, at_c), _product(patches, at_d)
            pick, _value = _first_largest(a, b, c, d, in_a, in_b, in_c, in_d, mean, scale, shift)
            none = tl.zeros_like(slope)
            to_a, to_b = tl.where(pick == 0, slope, none), tl.where(pick == 1, slope, none)
            to_c, to_d = tl.where(pick == 2, slope, none), tl.where(pick == 3, slope, none)
            of_a += _weigh(patches, to_a, a, in_a, mean, level, tilt, scale)
            of_b += _weigh(patches, to_b, b, in_b, mean, level, tilt, scale)
            of_c += _weigh(patches, to_c, c, in_c, mean, level, tilt, scale)
            of_d += _weigh(patches, to_d, d, in_d, mean, level, tilt, scale)
            dy += block_rows * channels
            dy2 += block_rows * channels
            window += block_rows
        part: tl.constexpr = reach * block_channels
        at = tl.arange(0, reach)[:, None] * block_channels + column[None, :]
        to = of_filters + (program - 1) * (4 * part) + at
        tl.store(to, of_a)
        tl.store(to + part, of_b)
        tl.store(to + 2 * part, of_c)
        tl.store(to + 3 * part, of_d)


@triton.jit
def _fold_filter_gradients(
    of_filters,
    d_filters,
    chunks,
    channels: tl.constexpr,
    depth: tl.constexpr,
    reach: tl.constexpr,
    block_channels: tl.constexpr,
    fold: tl.constexpr,
):
    """A program for each of a filter's numbers: over the chunks, and the four pixels' places."""
    number = tl.program_id(0)
    down, across, layer = number // (3 * depth), number // depth % 3, number % depth
    column = tl.arange(0, block_channels)
    chunk = tl.arange(0, fold)
    part: tl.constexpr = reach * block_channels
    total = tl.zeros([block_channels], tl.float32)
    for i in tl.static_range(2):
        for j in tl.static_range(2):
            place = ((down + i) * 4 + across + j) * depth + layer
            at = of_filters + (i * 2 + j) * part + place * block_channels
            for begin in range(0, chunks, fold):
                here = begin + chunk
                total += tl.sum(
                    tl.load(
                        at + here[:, None] * (4 * part) + column[None, :],
                        mask=(here < chunks)[:, None],
                        other=0.0,
                    ),
                    0,
                )
    to = d_filters + column * (9 * depth) + number
    tl.store(to, total, mask=column < channels)
