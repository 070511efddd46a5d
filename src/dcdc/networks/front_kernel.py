# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The front in one kernel: channels normalised, and the Sobel edges of their mean or not.

A program makes a block of one image's pixels. It computes in float32 from the images themselves and
rounds once, when it writes what the trunk's first convolution reads.

Shapes: B images, C channels, H x W pixels.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from dcdc.runtime.kernels import can_build

MOST_CHANNELS = 4
_BLOCK = 512
_PIXELS_OF_A_WARP = 128


@triton.jit
def _normalised(at, inside, channel, mean, std, channel_stride):
    """One channel of the pixels that begin at `at`."""
    value = tl.load(at + channel * channel_stride, mask=inside, other=0.0)
    return (value - tl.load(mean + channel)) * (1 / tl.load(std + channel))


@triton.jit
def _grey(
    image,
    row,
    column,
    mean,
    std,
    channel_stride,
    row_stride,
    column_stride,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """The mean of the normalised channels; 0 outside the image, whatever their means."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    at = image + row * row_stride + column * column_stride
    total = _normalised(at, inside, 0, mean, std, channel_stride)
    for channel in tl.static_range(1, channels):
        total += _normalised(at, inside, channel, mean, std, channel_stride)
    return tl.where(inside, total * (1 / channels), 0.0)


@triton.jit
def _front(
    images,
    mean,
    std,
    out,
    image_stride,
    channel_stride,
    row_stride,
    column_stride,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    edges: tl.constexpr,
    block: tl.constexpr,
):
    """Images anyhow -> 2 edges, or the C channels; channels last."""
    number = tl.program_id(0).to(tl.int64)
    image = images + number * image_stride
    pixel = tl.program_id(1) * block + tl.arange(0, block)
    row, column = pixel // width, pixel % width
    inside = pixel < height * width
    out_channels: tl.constexpr = 2 if edges else channels
    to = out + number * (height * width * out_channels) + pixel * out_channels
    if edges:
        across = tl.zeros((block,), tl.float32)
        down = tl.zeros((block,), tl.float32)
        for dy in tl.static_range(-1, 2):
            for dx in tl.static_range(-1, 2):
                if dy * dy + dx * dx > 0:
                    grey = _grey(
                        image,
                        row + dy,
                        column + dx,
                        mean,
                        std,
                        channel_stride,
                        row_stride,
                        column_stride,
                        channels,
                        height,
                        width,
                    )
                    across -= dx * (2 - dy * dy) * grey
                    down -= dy * (2 - dx * dx) * grey
        tl.store(to, across, mask=inside)
        tl.store(to + 1, down, mask=inside)
    else:
        at = image + row * row_stride + column * column_stride
        for channel in tl.static_range(channels):
            value = _normalised(at, inside, channel, mean, std, channel_stride)
            tl.store(to + channel, value, mask=inside)


def fits(images: Tensor, mean: Tensor, std: Tensor) -> bool:
    """Whether the kernel can take these; wherever they lie."""
    return (
        images.dim() == 4
        and images.numel() > 0
        and not images.requires_grad
        and images.shape[1] <= MOST_CHANNELS
        and mean.numel() == std.numel() == images.shape[1]
        and images.dtype == mean.dtype == std.dtype == torch.float32
        and images.device == mean.device == std.device
    )


def front(images: Tensor, mean: Tensor, std: Tensor, edges: bool, dtype: torch.dtype) -> Tensor:
    """B x C x H x W to B x 2 x H x W, or to as many channels without edges; channels last."""
    n_images, channels, height, width = images.shape
    out = torch.empty(
        (n_images, 2 if edges else channels, height, width),
        dtype=dtype,
        device=images.device,
        memory_format=torch.channels_last,
    )
    block = min(_BLOCK, triton.next_power_of_2(height * width))
    with torch.cuda.device_of(images):
        _front[(n_images, triton.cdiv(height * width, block))](
            *(images, mean.contiguous(), std.contiguous(), out, *images.stride()),
            *(channels, height, width, edges),
            block=block,
            num_warps=max(1, block // _PIXELS_OF_A_WARP),
        )
    return out


@cache
def is_available() -> bool:
    def launch() -> None:
        images, one = torch.zeros((1, 1, 1, 1), device="cuda"), torch.ones(1, device="cuda")
        front(images, one, one, True, torch.float32)

    is_compiled = isinstance(_front, triton.JITFunction)
    return is_compiled and can_build("the kernel of the front", launch)
