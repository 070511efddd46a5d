# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""Max over 2x2 windows with padding 1, forward and backward, on channels-last memory.

Shapes: B images, C channels, H x W pixels in, h x w windows out. A program takes some windows and
all or a block of their channels.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

_WINDOWS, _CHANNELS = 32, 64


@triton.jit
def _four(x, window, inside, channel, n_channels, height, width, high, wide):
    """The window's pixels in reading order (-inf outside the image), and where they lie."""
    across, down = window % wide, window // wide % high
    image = (window // (wide * high)).to(tl.int64)
    top, left = 2 * down - 1, 2 * across - 1
    start = ((image * height + top) * width + left) * n_channels
    known = inside[:, None] & (channel < n_channels)[None, :]
    m00 = known & ((top >= 0) & (left >= 0))[:, None]
    m01 = known & ((top >= 0) & (left + 1 < width))[:, None]
    m10 = known & ((top + 1 < height) & (left >= 0))[:, None]
    m11 = known & ((top + 1 < height) & (left + 1 < width))[:, None]
    at = start[:, None] + channel[None, :]
    low = float("-inf")
    a = tl.load(x + at, mask=m00, other=low)
    b = tl.load(x + at + n_channels, mask=m01, other=low)
    c = tl.load(x + at + width * n_channels, mask=m10, other=low)
    d = tl.load(x + at + (width + 1) * n_channels, mask=m11, other=low)
    return at, m00, m01, m10, m11, a, b, c, d


@triton.jit
def _forward(
    x, y, n, n_channels, height, width, high, wide, windows: tl.constexpr, channels: tl.constexpr
):
    window = tl.program_id(0) * windows + tl.arange(0, windows)
    channel = tl.program_id(1) * channels + tl.arange(0, channels)
    inside = window < n
    _, _, _, _, _, a, b, c, d = _four(
        x, window, inside, channel, n_channels, height, width, high, wide
    )
    every: tl.constexpr = tl.PropagateNan.ALL
    most = tl.maximum(tl.maximum(a, b, every), tl.maximum(c, d, every), every)
    known = inside[:, None] & (channel < n_channels)[None, :]
    tl.store(y + window.to(tl.int64)[:, None] * n_channels + channel[None, :], most, mask=known)


@triton.jit
def _backward(
    x,
    dy,
    dx,
    n,
    n_channels,
    height,
    width,
    high,
    wide,
    windows: tl.constexpr,
    channels: tl.constexpr,
):
    window = tl.program_id(0) * windows + tl.arange(0, windows)
    channel = tl.program_id(1) * channels + tl.arange(0, channels)
    inside = window < n
    at, m00, m01, m10, m11, a, b, c, d = _four(
        x, window, inside, channel, n_channels, height, width, high, wide
    )
    known = inside[:, None] & (channel < n_channels)[None, :]
    slope = tl.load(
        dy + window.to(tl.int64)[:, None] * n_channels + channel[None, :], mask=known, other=0.0
    )
    most = tl.maximum(tl.maximum(a, b), tl.maximum(c, d))
    first = a == most
    second = (b == most) & ~first
    third = (c == most) & ~first & ~second
    fourth = ~(first | second | third)
    none = tl.zeros_like(slope)
    tl.store(dx + at, tl.where(first, slope, none), mask=m00)
    tl.store(dx + at + n_channels, tl.where(second, slope, none), mask=m01)
    tl.store(dx + at + width * n_channels, tl.where(third, slope, none), mask=m10)
    tl.store(dx + at + (width + 1) * n_channels, tl.where(fourth, slope, none), mask=m11)


class _HalvingPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        n, channels, height, width = x.shape
        y = torch.empty(
            (n, channels, height // 2 + 1, width // 2 + 1),
            dtype=x.dtype,
            device=x.device,
            memory_format=torch.channels_last,
        )
        _launch(_forward, x, y, (x, y))
        ctx.save_for_backward(x)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        dy = dy.contiguous(memory_format=torch.channels_last)
        dx = torch.empty_like(x)
        _launch(_backward, x, dy, (x, dy, dx))
        return dx


def _launch(kernel: Any, x: Tensor, y: Tensor, tensors: tuple[Tensor, ...]) -> None:
    n_windows = len(y) * y.shape[2] * y.shape[3]
    grid = (triton.cdiv(n_windows, _WINDOWS), triton.cdiv(x.shape[1], _CHANNELS))
    kernel[grid](
        *tensors,
        *(n_windows, *x.shape[1:], *y.shape[2:]),
        windows=_WINDOWS,
        channels=_CHANNELS,
        num_warps=8,
    )


def halving_pool(x: Tensor) -> Tensor:
    out: Tensor = _HalvingPool.apply(x)
    return out
