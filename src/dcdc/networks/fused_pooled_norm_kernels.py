# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The three Triton kernels of fused_pooled_norm.py, which says what each reads and writes.

A row of a tile is a window of the pool, and `end0` to `end3` count windows; its four pixels, in
reading order, are a, b, c and d, and `at` is where a lies in x. Windows at the border lack some.
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


@triton.jit
def _in_pixels(windows, height: tl.constexpr, width: tl.constexpr):
    """As many images' pixels."""
    return windows // ((height // 2 + 1) * (width // 2 + 1)) * (height * width)


@triton.jit
def _load_windows(
    x, window, inside, column, channels: tl.constexpr, height: tl.constexpr, width: tl.constexpr
):
    """Where the first pixels lie, which of the four the image has, and the four."""
    high: tl.constexpr = height // 2 + 1
    wide: tl.constexpr = width // 2 + 1
    image = (window // (high * wide)).to(tl.int64)
    top = window // wide % high * 2 - 1
    left = window % wide * 2 - 1
    at = (((image * height + top) * width + left) * channels)[:, None] + column[None, :]
    upper, lower = inside & (top >= 0)[:, None], inside & (top + 1 < height)[:, None]
    before, after = (left >= 0)[:, None], (left + 1 < width)[:, None]
    in_a, in_b, in_c, in_d = upper & before, upper & after, lower & before, lower & after
    a = tl.load(x + at, mask=in_a, other=0.0)
    b = tl.load(x + at + channels, mask=in_b, other=0.0)
    c = tl.load(x + at + width * channels, mask=in_c, other=0.0)
    d = tl.load(x + at + (width + 1) * channels, mask=in_d, other=0.0)
    return at, in_a, in_b, in_c, in_d, a, b, c, d


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
    """Which pixel the pool takes, 0 to 3 or -1 where the ReLU is closed, and its value in x."""
    most = _held(a, in_a, mean, scale, shift)
    pick = tl.zeros(most.shape, tl.int32)
    most, pick, value = _larger(most, pick, a, b, in_b, 1, mean, scale, shift)
    most, pick, value = _larger(most, pick, value, c, in_c, 2, mean, scale, shift)
    most, pick, value = _larger(most, pick, value, d, in_d, 3, mean, scale, shift)
    return tl.where(most <= 0, -1, pick), value


@triton.jit(do_not_specialize=ENDS)
def _apply_and_pool(
    x,
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
    height: tl.constexpr,
    width: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    pixels: tl.constexpr,
    fold: tl.constexpr,
    overlap: tl.constexpr,
):
    """As `_apply`, and the largest of each window; `pixels`: of a chunk of the kernel before."""
    columns: tl.constexpr = (channels + block_channels - 1) // block_channels
    program = tl.program_id(0)
    column = program % columns * block_channels + tl.arange(0, block_channels)
    known = column < channels
    pixel_end0 = _in_pixels(end0, height, width)
    pixel_end1 = _in_pixels(end1, height, width)
    pixel_end2 = _in_pixels(end2, height, width)
    pixel_end3 = _in_pixels(end3, height, width)
    if program < columns:
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
        chunk = program // columns - 1
        group, chunk, begin, rows = _place(chunk, end0, end1, end2, end3, block_rows * tiles)
        row = tl.arange(0, block_rows)
        offset = row[:, None] * channels + column[None, :]
        window = begin.to(tl.int32) + row
        y += begin * channels

        inside = _inside(row, rows, column, channels, block_channels)
        _at, in_a, in_b, in_c, in_d, a, b, c, d = _load_windows(
            x, window, inside, column, channels, height, width
        )
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
            upper = tl.maximum(
                _held(a, in_a, mean, scale, shift), _held(b, in_b, mean, scale, shift), nan
            )
            lower = tl.maximum(
                _held(c, in_c, mean, scale, shift), _held(d, in_d, mean, scale, shift), nan
            )
            out = tl.maximum(tl.maximum(upper, lower, nan), 0.0, nan)
            tl.store(y + offset, out, mask=inside)
            y += block_rows * channels
            window += block_rows
            inside = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
            _at, in_a, in_b, in_c, in_d, a, b, c, d = _load_windows(
                x, window, inside, column, channels, height, width
            )


@triton.jit(do_not_specialize=ENDS)
def _partial_pooled_gradients(
    dy,
    dy2,
    x,
    weight,
    bias,
    statistics,
    partials,
    end0,
    end1,
    end2,
    end3,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
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
    columns: tl.constexpr = (channels + block_channels - 1) // block_channels
    chunk = tl.program_id(0) // columns
    column = tl.program_id(0) % columns * block_channels + tl.arange(0, block_channels)
    known = column < channels
    group, chunk, begin, rows = _place(chunk, end0, end1, end2, end3, block_rows * tiles)
    row = tl.arange(0, block_rows)
    offset = row[:, None] * channels + column[None, :]
    window = begin.to(tl.int32) + row
    dy += begin * channels
    dy2 += begin * channels

    inside = _inside(row, rows, column, channels, block_channels)
    _at, in_a, in_b, in_c, in_d, a, b, c, d = _load_windows(
        x, window, inside, column, channels, height, width
    )
    slope = tl.load(dy + offset, mask=inside, other=0.0)
    if two:
        slope2 = tl.load(dy2 + offset, mask=inside, other=0.0)
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
        pick, value = _first_largest(a, b, c, d, in_a, in_b, in_c, in_d, mean, scale, shift)
        slope = tl.where(pick < 0, 0.0, slope).to(tl.float32)
        sums += slope
        products += slope * (value.to(tl.float32) - mean[None, :])
        dy += block_rows * channels
        window += block_rows
        inside = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
        _at, in_a, in_b, in_c, in_d, a, b, c, d = _load_windows(
            x, window, inside, column, channels, height, width
        )
        slope = tl.load(dy + offset, mask=inside, other=0.0)
        if two:
            dy2 += block_rows * channels
            slope2 = tl.load(dy2 + offset, mask=inside, other=0.0)

    of_dy, of_product = _sums(sums, products)
    one, other = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(one + chunk, of_dy)
    tl.store(other + chunk, of_product * rstd)


@triton.jit(do_not_specialize=ENDS)
def _input_gradient_of_windows(
    dy,
    dy2,
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
    height: tl.constexpr,
    width: tl.constexpr,
    block_rows: tl.constexpr,
    block_channels: tl.constexpr,
    tiles: tl.constexpr,
    fold: tl.constexpr,
    two: tl.constexpr,
    overlap: tl.constexpr,
):
    """As `_input_gradient`; every pixel lies in one window."""
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
        window = begin.to(tl.int32) + row
        dy += begin * channels
        dy2 += begin * channels

        inside = _inside(row, rows, column, channels, block_channels)
        at, in_a, in_b, in_c, in_d, a, b, c, d = _load_windows(
            x, window, inside, column, channels, height, width
        )
        slope = tl.load(dy + offset, mask=inside, other=0.0)
        if two:
            slope2 = tl.load(dy2 + offset, mask=inside, other=0.0)
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
        for tile in range(tiles):
            if two:
                slope = _sum_of_two(slope, slope2)
            pick, _value = _first_largest(a, b, c, d, in_a, in_b, in_c, in_d, mean, scale, shift)
            none = tl.zeros_like(slope)
            to_a, to_b = tl.where(pick == 0, slope, none), tl.where(pick == 1, slope, none)
            to_c, to_d = tl.where(pick == 2, slope, none), tl.where(pick == 3, slope, none)
            to = dx + at
            tl.store(to, _gradient(to_a, a, mean, level, tilt, scale), mask=in_a)
            tl.store(to + channels, _gradient(to_b, b, mean, level, tilt, scale), mask=in_b)
            to += width * channels
            tl.store(to, _gradient(to_c, c, mean, level, tilt, scale), mask=in_c)
            tl.store(to + channels, _gradient(to_d, d, mean, level, tilt, scale), mask=in_d)
            dy += block_rows * channels
            window += block_rows
            inside = _inside((tile + 1) * block_rows + row, rows, column, channels, block_channels)
            at, in_a, in_b, in_c, in_d, a, b, c, d = _load_windows(
                x, window, inside, column, channels, height, width
            )
            slope = tl.load(dy + offset, mask=inside, other=0.0)
            if two:
                dy2 += block_rows * channels
                slope2 = tl.load(dy2 + offset, mask=inside, other=0.0)
