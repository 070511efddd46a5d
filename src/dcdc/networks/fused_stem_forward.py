# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The two Triton kernels of the stem's forward pass; fused_stem.py says what they read and write.

Rows are windows of the pool, and `end0` to `end3` count windows. The first kernel's rows are blocks
of pixels instead, two by two, or one along a side of odd length, so that none lacks a pixel; its
ends count pixels. What a convolution v = w . p has for mean and variance follows from the patches'
own: w . mean(p), and w . cov(p) w.
"""

import triton
import triton.language as tl

from dcdc.networks.fused_norm_parts import (
    ENDS,
    _fold_statistics,
    _partials,
    _place,
    _span,
    _update_running,
)
from dcdc.networks.fused_stem_parts import (
    _first_window,
    _in_pixels,
    _load_patches,
    _load_signed,
    _load_weights,
    _load_windows,
    _or_least,
    _pixels_there,
    _product,
)


@triton.jit(do_not_specialize=ENDS)
def _partial_statistics_of_stem(
    images,
    filters,
    partials,
    moments,
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
    """As `_partial_statistics`, of convolved pixels; and the patches' own, which backward reads.

    `moments`: per chunk, sums of products of deviations, reach x reach, and below them the mean.
    """
    if overlap:
        tl.extra.cuda.gdc_launch_dependents()
    tall: tl.constexpr = 2 - height % 2
    wide: tl.constexpr = 2 - width % 2
    step: tl.constexpr = block_rows // (tall * wide)
    block: tl.constexpr = step if step > 16 else 16  # as few rows as a product can have
    high: tl.constexpr = height // tall
    broad: tl.constexpr = width // wide
    program = tl.program_id(0)
    group, chunk, begin, pixels = _place(program, end0, end1, end2, end3, block_rows * tiles)
    begin = begin // (tall * wide)
    rows = pixels // (tall * wide)
    images += begin // (high * broad) * (height * width * depth)
    window = (begin % (high * broad)).to(tl.int32)
    row = tl.arange(0, block)
    total = tl.zeros([reach, reach], tl.float32)
    sums = tl.zeros([block, reach], tl.float32)
    centre = tl.zeros([reach], tl.float32)
    exact: tl.constexpr = images.dtype.element_ty != tl.float32
    if not exact:  # products of two halves are exact in float32, of others they are not
        inside = row < tl.minimum(step, rows)
        patches = _load_patches(
            *(images, window + row, inside, high, broad, tall, wide, 1),
            *(depth, height, width, reach),
        )
        centre = tl.sum(patches, 0) / tl.minimum(step, rows)
    for tile in range(tiles):
        inside = (row < step) & (tile * step + row < rows)
        patches = _load_patches(
            *(images, window + tile * step + row, inside, high, broad, tall, wide, 1),
            *(depth, height, width, reach),
        )
        if not exact:
            patches = tl.where(inside[:, None], patches - centre[None, :], 0.0)
        total += _product(tl.trans(patches), patches)
        sums += patches.to(tl.float32)

    away = tl.sum(sums, 0)
    total -= away[:, None] * (away / rows)[None, :]
    average = centre + away / rows
    number = tl.arange(0, reach)
    to = moments + program * ((reach + 1) * reach) + number
    tl.store(to[None, :] + number[:, None] * reach, total)
    tl.store(to + reach * reach, average)

    column = tl.arange(0, block_channels)
    mean = tl.zeros([block_channels], tl.float32)
    within = tl.zeros([block_channels], tl.float32)
    between = tl.zeros([block_channels], tl.float32)
    for i in tl.static_range(tall):
        for j in tl.static_range(wide):
            weights = _load_weights(filters, column, channels, i, j, wide, depth, reach)
            weights = weights.to(tl.float32)
            here = tl.sum(weights * average[:, None], 0)
            within += tl.sum(weights * tl.dot(total, weights, input_precision="tf32x3"), 0)
            slip = here - mean
            mean += slip / (i * wide + j + 1)
            between += slip * (here - mean)
    means, deviations = _partials(partials, group, column, channels, block_channels, fold)
    tl.store(means + chunk, mean)
    tl.store(deviations + chunk, within + between * rows)


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
        y += begin * channels
        images, window = _first_window(images, begin, depth, height, width)
        scale = tl.load(weight + column, mask=known, other=0.0)
        shift = tl.load(bias + column, mask=known, other=0.0)
        below = scale < 0
        at_a = _load_signed(filters, column, below, channels, 0, 0, depth, reach)
        at_b = _load_signed(filters, column, below, channels, 0, 1, depth, reach)
        at_c = _load_signed(filters, column, below, channels, 1, 0, depth, reach)
        at_d = _load_signed(filters, column, below, channels, 1, 1, depth, reach)
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
        shift -= scale * mean
        scale = tl.abs(scale)
        for tile in range(tiles):
            inside = tile * block_rows + row < rows
            patches = _load_windows(images, window + row, inside, depth, height, width, reach)
            upper, lower, before, after = _pixels_there(window + row, height, width)
            most = tl.maximum(
                _or_least(_product(patches, at_a), (upper & before)[:, None]),
                _or_least(_product(patches, at_b), (upper & after)[:, None]),
            )
            most = tl.maximum(most, _or_least(_product(patches, at_c), (lower & before)[:, None]))
            most = tl.maximum(most, _or_least(_product(patches, at_d), (lower & after)[:, None]))
            out = most * scale[None, :] + shift[None, :]
            out = tl.maximum(out, 0.0, tl.PropagateNan.ALL)  # a NaN is in the statistics too
            here = (
                inside[:, None] if channels == block_channels else inside[:, None] & known[None, :]
            )
            tl.store(y + offset, out, mask=here)
            y += block_rows * channels
            window += block_rows
