# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The four Triton kernels of fused_stem.py, which says what each reads and writes.

A row of a tile is a window of the pool, and `end0` to `end3` count windows. The four pixels of a
window, in reading order, are a, b, c and d. All that their convolutions read is one patch of 4 x 4
pixels: a row of `reach` numbers, in a product with the weights of each of the four, laid out as the
patch is. Windows at the border lack some pixels.

The first kernel's rows are blocks of pixels instead, two by two, or one along a side of odd length,
so that none lacks a pixel; its ends count pixels. What a convolution v = w . p has for mean and
variance follows from the patches' own: w . mean(p), and w . cov(p) w.
"""

import triton
import triton.language as tl

from dcdc.networks.fused_norm_parts import (
    ENDS,
    _fold_statistics,
    _fold_sums,
    _partials,
    _place,
    _span,
    _sum_of_two,
    _sum_over_groups,
    _update_running,
)


@triton.jit
def _in_pixels(windows, height: tl.constexpr, width: tl.constexpr):
    """As many images' pixels."""
    return windows // ((height // 2 + 1) * (width // 2 + 1)) * (height * width)


@triton.jit
def _load_patches(
    images,
    window,
    inside,
    high: tl.constexpr,
    broad: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
    lead: tl.constexpr,
    depth: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    reach: tl.constexpr,
):
    """What the convolutions of `tall` x `wide` pixels read; 0 beyond the image.

    An image has `high` x `broad` windows; the first one's patch begins `lead` pixels before the
    image. Pixels that are in the image or beyond it together are loaded together.
    """
    line: tl.constexpr = (wide + 2) * depth
    used: tl.constexpr = (tall + 2) * line
    together: tl.constexpr = 2 if wide == 2 and lead == 2 and width % 2 == 0 else 1
    alike: tl.constexpr = (together * depth) & -(together * depth)  # has to be a power of two
    number = tl.arange(0, reach)
    down = (number // line)[None, :]
    along = number % line
    across = (along // (together * depth) * together)[None, :]
    offset = (number // line * (width * depth) + along)[None, :]

    lines = window.to(tl.uint32) // broad
    image = (lines // high).to(tl.int32)
    top = (lines % high).to(tl.int32) * tall - lead
    left = (window.to(tl.uint32) % broad).to(tl.int32) * wide - lead
    begin = ((image * height + top) * width + left) * depth
    top = tl.where(inside, top, height)[:, None]
    across = tl.max_constancy(left[:, None] + across, [1, alike])
    there = (top + down >= 0) & (top + down < height) & (across >= 0) & (across < width)
    if used < reach:
        there = there & (number < used)[None, :]
    return tl.load(images + (begin[:, None] + offset), mask=there, other=0.0)


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
    """The pool's windows' patches."""
    high: tl.constexpr = height // 2 + 1
    broad: tl.constexpr = width // 2 + 1
    return _load_patches(images, window, inside, high, broad, 2, 2, 2, depth, height, width, reach)


@triton.jit
def _pixels_there(window, height: tl.constexpr, width: tl.constexpr):
    """Whether windows have their upper, lower, left and right pixels."""
    high: tl.constexpr = height // 2 + 1
    broad: tl.constexpr = width // 2 + 1
    down = (window.to(tl.uint32) // broad % high).to(tl.int32)
    across = (window.to(tl.uint32) % broad).to(tl.int32)
    return down > 0, down * 2 < height, across > 0, across * 2 < width


@triton.jit
def _load_weights(
    filters,
    column,
    channels: tl.constexpr,
    i: tl.constexpr,
    j: tl.constexpr,
    wide: tl.constexpr,
    depth: tl.constexpr,
    reach: tl.constexpr,
):
    """Of the 3 x 3 convolution at pixel (i, j) of a block `wide` pixels wide: reach x channels."""
    number = tl.arange(0, reach)
    down = number // ((wide + 2) * depth) - i
    across = number // depth % (wide + 2) - j
    there = (down >= 0) & (down < 3) & (across >= 0) & (across < 3)
    at = (down * 3 + across) * depth + number % depth
    known = there[:, None] & (column < channels)[None, :]
    return tl.load(filters + at[:, None] + (column * 9 * depth)[None, :], mask=known, other=0.0)


@triton.jit
def _load_signed(
    filters,
    column,
    below,
    channels: tl.constexpr,
    i: tl.constexpr,
    j: tl.constexpr,
    depth: tl.constexpr,
    reach: tl.constexpr,
):
    """Negated where `below`, a channel whose scale is: its largest output is then the largest."""
    weights = _load_weights(filters, column, channels, i, j, 2, depth, reach)
    return tl.where(below[None, :], -weights, weights)


@triton.jit
def _product(one, other):
    return tl.dot(one, other, input_precision="ieee")


@triton.jit
def _or_least(value, inside):
    return tl.where(inside, value, float("-inf"))


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


@triton.jit
def _first_window(images, begin, depth: tl.constexpr, height: tl.constexpr, width: tl.constexpr):
    """Where the image of a chunk's first window lies, and the window's number there."""
    per_image: tl.constexpr = (height // 2 + 1) * (width // 2 + 1)
    images += begin // per_image * (height * width * depth)
    return images, (begin % per_image).to(tl.int32)


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
