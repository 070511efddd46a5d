# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""What the Triton kernels of the stem share: patches, and the weights of four pixels' convolutions.

A row of a tile is a window of the pool. The four pixels of a window, in reading order, are a, b, c
and d. All that their convolutions read is one patch of 4 x 4 pixels: a row of `reach` numbers, in a
product with the weights of each of the four, laid out as the patch is. Windows at the border lack
some pixels.
"""

import triton
import triton.language as tl


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


@triton.jit
def _first_window(images, begin, depth: tl.constexpr, height: tl.constexpr, width: tl.constexpr):
    """Where the image of a chunk's first window lies, and the window's number there."""
    per_image: tl.constexpr = (height // 2 + 1) * (width // 2 + 1)
    images += begin // per_image * (height * width * depth)
    return images, (begin % per_image).to(tl.int32)
