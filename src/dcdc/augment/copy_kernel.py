# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
# ruff: noqa: SIM102  (an outer `if` of a draw is settled when the kernel is built, not its inner one)
"""Every pixel of a copy in one kernel: crop and resize, colour jitter, grey, flip.

A program makes one copy, a block of pixels at a time. No op but the contrast looks at more than its
own pixel, so the flip is done where pixels are read, and an image of several blocks is gone through
twice: up to its contrast, for the mean grey, then all the way. A draw that is None is left out when
the kernel is built. A second kernel turns random numbers into boxes, some forty launches otherwise.

B images, r repeats, C channels (1 or 3; in a kernel, the one channel is red), H x W pixels, A
attempts; a box is top, left, height, width
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from dcdc.augment.color import Jitter
from dcdc.runtime.device import can_build

_BLOCK = 1024
_PIXELS_OF_A_WARP = 128
_NO_JITTER = Jitter(None, None, None, None, None)  # type: ignore[arg-type]
_BOX_BLOCK = 64


@triton.jit
def _taps(target, first, length, n_out: tl.constexpr):
    """The two pixels of an axis about pixel `target` of n_out, and the second one's weight.

    The place is length * (target + 1/2) / n_out - 1/2, here in whole numbers, without rounding;
    past the crop's border lies its last pixel once more.
    """
    place = length * (2 * target + 1) + n_out  # 2 * n_out too far, since // cuts towards 0
    before = place // (2 * n_out) - 1
    weight = (place % (2 * n_out)).to(tl.float32) * (1 / (2 * n_out))
    return first + tl.maximum(before, 0), first + tl.minimum(before + 1, length - 1), weight


@triton.jit
def _between(channel, above, below, left, right, weight_below, weight_right, inside):
    """One channel in [0, 1], mixed from four bytes at offsets of rows and of columns."""
    above_left = tl.load(channel + above + left, mask=inside, other=0).to(tl.float32)
    above_right = tl.load(channel + above + right, mask=inside, other=0).to(tl.float32)
    below_left = tl.load(channel + below + left, mask=inside, other=0).to(tl.float32)
    below_right = tl.load(channel + below + right, mask=inside, other=0).to(tl.float32)
    upper = above_left + weight_right * (above_right - above_left)
    lower = below_left + weight_right * (below_right - below_left)
    return (upper + weight_below * (lower - upper)) * (1 / 255)


@triton.jit
def _luminance(red, green, blue, channels: tl.constexpr):
    return red if channels == 1 else red * 0.2989 + green * 0.587 + blue * 0.114


@triton.jit
def _clamp(x):
    return tl.minimum(tl.maximum(x, 0.0), 1.0)


@triton.jit
def _blend(red, green, blue, other, amount):
    """With another image, or with one value for every pixel."""
    rest = (1 - amount) * other
    return _clamp(amount * red + rest), _clamp(amount * green + rest), _clamp(amount * blue + rest)


@triton.jit
def _ramp(high, span, place):
    """A channel by its place on the circle, whose length is 6."""
    place -= 6 * tl.floor(place * (1 / 6))
    return high - span * _clamp(tl.minimum(place, 4 - place))


@triton.jit
def _shift_hue(red, green, blue, shift):
    high = tl.maximum(tl.maximum(red, green), blue)
    span = high - tl.minimum(tl.minimum(red, green), blue)
    rise = tl.where(
        high == red, green - blue, tl.where(high == green, blue - red, red - green)
    ) / tl.where(span == 0, 1.0, span)  # grey has no hue
    place = tl.where(high == red, 0.0, tl.where(high == green, 2.0, 4.0)) + rise + 6 * shift
    return _ramp(high, span, place + 5), _ramp(high, span, place + 3), _ramp(high, span, place + 1)


@triton.jit
def _turn(op: tl.constexpr, times):
    """How many of a copy's four ops come before this one; of equals, the first comes first."""
    own = tl.load(times + op)
    turn = 0
    for other in tl.static_range(4):
        if other < op:
            turn += (tl.load(times + other) <= own).to(tl.int32)
        elif other > op:
            turn += (tl.load(times + other) < own).to(tl.int32)
    return turn


@triton.jit
def _make_copies(
    images,
    copies,
    offsets,
    boxes,
    brightness,
    contrast,
    saturation,
    hue,
    when,
    grey,
    flip,
    n_images,
    image_stride,
    channel_stride,
    row_stride,
    column_stride,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    resized_height: tl.constexpr,
    resized_width: tl.constexpr,
    out_height: tl.constexpr,
    out_width: tl.constexpr,
    block: tl.constexpr,
):
    """Box -> resized -> out from its offset -> colours; a program per copy, channels last."""
    copy = tl.program_id(0)
    image = images + (copy % n_images).to(tl.int64) * image_stride
    n_pixels: tl.constexpr = out_height * out_width
    n_blocks: tl.constexpr = (n_pixels + block - 1) // block
    needs_two_rounds: tl.constexpr = contrast is not None and n_blocks > 1
    n_rounds: tl.constexpr = 2 if needs_two_rounds else 1

    top, left, box_height, box_width = 0, 0, height, width
    if boxes is not None:
        top = tl.load(boxes + 4 * copy).to(tl.int32)
        left = tl.load(boxes + 4 * copy + 1).to(tl.int32)
        box_height = tl.load(boxes + 4 * copy + 2).to(tl.int32)
        box_width = tl.load(boxes + 4 * copy + 3).to(tl.int32)

    mean = 0.0
    for visit in range(n_rounds * n_blocks):
        is_last_round = visit >= (n_rounds - 1) * n_blocks
        pixel = visit % n_blocks * block + tl.arange(0, block)
        inside = pixel < n_pixels
        down, across = pixel // out_width, pixel % out_width
        if flip is not None:
            across = tl.where(tl.load(flip + copy) != 0, out_width - 1 - across, across)
        if offsets is not None:
            down += tl.load(offsets + 2 * copy).to(tl.int32)
            across += tl.load(offsets + 2 * copy + 1).to(tl.int32)
        row, next_row, weight_below = _taps(down, top, box_height, resized_height)
        column, next_column, weight_right = _taps(across, left, box_width, resized_width)
        row, next_row = row * row_stride, next_row * row_stride
        column, next_column = column * column_stride, next_column * column_stride
        red = _between(
            image, row, next_row, column, next_column, weight_below, weight_right, inside
        )
        green, blue = red, red
        if channels == 3:
            second, third = image + channel_stride, image + 2 * channel_stride
            green = _between(
                second, row, next_row, column, next_column, weight_below, weight_right, inside
            )
            blue = _between(
                third, row, next_row, column, next_column, weight_below, weight_right, inside
            )

        if when is not None:
            times = when + 4 * copy
            n_turns = 4
            if needs_two_rounds:
                n_turns = tl.where(is_last_round, 4, _turn(1, times))
            for turn in range(n_turns):
                if brightness is not None:
                    if turn == _turn(0, times):
                        amount = tl.load(brightness + copy)
                        red, green, blue = _blend(red, green, blue, 0.0, amount)
                if contrast is not None:
                    if turn == _turn(1, times):
                        if n_blocks == 1:
                            seen = tl.where(inside, _luminance(red, green, blue, channels), 0.0)
                            mean = tl.sum(seen) * (1 / n_pixels)
                        amount = tl.load(contrast + copy)
                        red, green, blue = _blend(red, green, blue, mean, amount)
                if saturation is not None:
                    if turn == _turn(2, times):
                        amount = tl.load(saturation + copy)
                        other = _luminance(red, green, blue, channels)
                        red, green, blue = _blend(red, green, blue, other, amount)
                if hue is not None:
                    if turn == _turn(3, times):
                        red, green, blue = _shift_hue(red, green, blue, tl.load(hue + copy))

        if is_last_round:
            if grey is not None:
                has_no_colour = tl.load(grey + copy) != 0
                other = _luminance(red, green, blue, channels)
                red = tl.where(has_no_colour, other, red)
                green = tl.where(has_no_colour, other, green)
                blue = tl.where(has_no_colour, other, blue)
            out = copies + copy.to(tl.int64) * (n_pixels * channels) + pixel * channels
            tl.store(out, red, mask=inside)
            if channels == 3:
                tl.store(out + 1, green, mask=inside)
                tl.store(out + 2, blue, mask=inside)
        else:
            seen = tl.where(inside, _luminance(red, green, blue, channels), 0.0)
            mean += tl.sum(seen) * (1 / n_pixels)


def fits(images: Tensor) -> bool:
    """Whether the kernel can take these; wherever they lie."""
    return images.dtype == torch.uint8 and images.shape[1] in (1, 3) and images.numel() > 0


def original_copies(images: Tensor, offsets: Tensor, resize_to: int, size: int) -> Tensor:
    """B x C x size x size: apply_resize_crop of bytes no larger than resize_to, channels last."""
    assert max(images.shape[2:]) <= resize_to, (images.shape, resize_to)
    return _launch(images, len(images), (resize_to, resize_to), (size, size), offsets=offsets)


def perturbed_copies(
    images: Tensor,
    n_repeats: int,
    boxes: Tensor | None,
    jitter: Jitter | None,
    grey: Tensor | None,
    flip: Tensor | None,
) -> Tensor:
    """rB x C x H x W from bytes, channels last; each draw is as its op takes it, for rB copies."""
    side = (images.shape[2], images.shape[3])
    if images.shape[1] == 1:
        grey = None
        jitter = jitter and jitter._replace(saturation=None, hue=None)
    return _launch(
        images,
        len(images) * n_repeats,
        side,
        side,
        boxes=boxes,
        jitter=jitter,
        grey=grey,
        flip=flip,
    )


def _launch(
    images: Tensor,
    n_copies: int,
    resized: tuple[int, int],
    out: tuple[int, int],
    *,
    offsets: Tensor | None = None,
    boxes: Tensor | None = None,
    jitter: Jitter | None = None,
    grey: Tensor | None = None,
    flip: Tensor | None = None,
) -> Tensor:
    n_images, channels, height, width = images.shape
    draws = (offsets, boxes, *(jitter or _NO_JITTER), grey, flip)
    assert all(draw is None or len(draw) == n_copies for draw in draws)
    copies = torch.empty(
        (n_copies, channels, *out), device=images.device, memory_format=torch.channels_last
    )
    block = min(_BLOCK, triton.next_power_of_2(out[0] * out[1]))
    with torch.cuda.device_of(images):
        _make_copies[(n_copies,)](
            *(images, copies),
            *(None if draw is None else draw.contiguous() for draw in draws),
            *(n_images, *images.stride()),
            *(channels, height, width, *resized, *out),
            block=block,
            num_warps=max(1, block // _PIXELS_OF_A_WARP),
        )
    return copies


@cache
def is_available() -> bool:
    def launch() -> None:
        images = torch.zeros((1, 1, 1, 1), dtype=torch.uint8, device="cuda")
        perturbed_copies(images, 1, None, None, None, None)

    is_compiled = isinstance(_make_copies, triton.JITFunction)
    return is_compiled and can_build("the kernel of the copies", launch)


@triton.jit
def _fitting_boxes(
    areas,
    aspects,
    places,
    boxes,
    n,
    height,
    width,
    centred_height,
    centred_width,
    attempts: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0) * block + tl.arange(0, block)
    inside = image < n
    box_height = tl.zeros((block,), tl.float32)
    box_width = tl.zeros((block,), tl.float32)
    found = image < 0
    for attempt in tl.static_range(attempts):
        area = tl.load(areas + image * attempts + attempt, mask=inside, other=0.0)
        aspect = tl.load(aspects + image * attempts + attempt, mask=inside, other=1.0)
        high = tl.floor(tl.sqrt_rn(tl.div_rn(area, aspect)) + 0.5)
        wide = tl.floor(tl.sqrt_rn(area * aspect) + 0.5)
        fits = (high > 0) & (high <= height) & (wide > 0) & (wide <= width)
        box_height = tl.where(fits & ~found, high, box_height)
        box_width = tl.where(fits & ~found, wide, box_width)
        found = found | fits
    top = tl.floor(tl.load(places + image, mask=inside, other=0.0) * (height - box_height + 1))
    left = tl.floor(tl.load(places + n + image, mask=inside, other=0.0) * (width - box_width + 1))
    top = tl.where(found, top.to(tl.int32), (height - centred_height) // 2)
    left = tl.where(found, left.to(tl.int32), (width - centred_width) // 2)
    box_height = tl.where(found, box_height.to(tl.int32), centred_height)
    box_width = tl.where(found, box_width.to(tl.int32), centred_width)
    tl.store(boxes + 4 * image, top.to(tl.int64), mask=inside)
    tl.store(boxes + 4 * image + 1, left.to(tl.int64), mask=inside)
    tl.store(boxes + 4 * image + 2, box_height.to(tl.int64), mask=inside)
    tl.store(boxes + 4 * image + 3, box_width.to(tl.int64), mask=inside)


def fitting_boxes(
    areas: Tensor,
    aspects: Tensor,
    places: Tensor,
    limits: tuple[int, int],
    centred: tuple[int, int],
) -> Tensor:
    """B x 4 from areas, aspects (B x A) and places (2 x B); limits, centred: height and width."""
    n, attempts = areas.shape
    boxes = torch.empty((n, 4), dtype=torch.int64, device=areas.device)
    with torch.cuda.device_of(areas):
        _fitting_boxes[(triton.cdiv(n, _BOX_BLOCK),)](
            *(areas, aspects, places, boxes, n, *limits, *centred),
            attempts=attempts,
            block=_BOX_BLOCK,
            num_warps=2,
        )
    return boxes
