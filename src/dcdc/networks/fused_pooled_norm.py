# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""Batch norm per copy group, ReLU and the stem's 2x2 max-pool with padding 1 as Triton kernels.

Shapes: as fused_norm.py has them; x of H x W pixels, y and dy of H // 2 + 1 x W // 2 + 1 windows.
The windows do not overlap, so a program that has a window has all that its four pixels need: the
norm's output is never written, and what the pool took is found again from x.

Read -> written: x -> nothing; x -> y. Backward: x, dy, dy2 -> nothing; x, dy, dy2 -> dx. The output
is forked, as in fused_norm.py.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dcdc.networks import fused_norm
from dcdc.networks.fused_norm import KernelPair, exchange_sums, exchanged, given, kept
from dcdc.networks.fused_norm_kernels import _partial_statistics
from dcdc.networks.fused_pooled_norm_kernels import (
    _apply_and_pool,
    _input_gradient_of_windows,
    _partial_pooled_gradients,
)
from dcdc.runtime.processes import ALONE, Processes

_WINDOW_BYTES = 4096
"""Of a tile of windows, which has four such tiles of pixels; 16 bytes a thread and load."""


class _FusedPooledNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        num_batches_tracked: Tensor,
        groups: tuple[int, ...],
        momentum: float,
        eps: float,
        processes: Processes,
    ) -> tuple[Tensor, Tensor]:
        n_images, channels, height, width = x.shape
        y = torch.empty(
            (n_images, channels, height // 2 + 1, width // 2 + 1),
            dtype=x.dtype,
            device=x.device,
            memory_format=torch.channels_last,
        )
        pixels = KernelPair.over(x, groups, fused_norm._FORWARD_BYTES)
        windows = KernelPair.over(y, groups, _WINDOW_BYTES)
        partials = pixels.workspace()
        size = (len(groups), 2, channels)
        statistics = torch.empty(size, dtype=torch.float32, device=x.device)
        with torch.cuda.device_of(x):
            pixels.first(_partial_statistics, x, partials)
            shared = exchanged(pixels, partials, processes)
            buffers = (running_mean, running_var, num_batches_tracked)
            windows.second(
                _apply_and_pool,
                *(x, y, weight, bias),
                *kept(buffers, shared, momentum),
                *(partials, statistics, momentum, eps),
                height=height,
                width=width,
                pixels=pixels.tiles.block_rows * pixels.tiles.tiles,
                fold=pixels.tiles.fold,
            )
        ctx.groups, ctx.processes, ctx.counts = groups, processes, None
        if shared is not None:
            # The backward kernels' rows are windows; only their shares count.
            ctx.counts = shared.counts * (windows.rows[0] / pixels.rows[0])
        ctx.save_for_backward(x, weight, bias, statistics)
        ctx.set_materialize_grads(False)
        return y, y.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        x, weight, bias, statistics = ctx.saved_tensors
        dy, dy2 = given(slopes)
        windows = KernelPair.over(dy, ctx.groups, _WINDOW_BYTES)
        partials = windows.workspace()
        dx, d_weight, d_bias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(bias)
        both = (dy, dy if dy2 is None else dy2)
        switches = {"height": x.shape[2], "width": x.shape[3], "two": dy2 is not None}
        windows.first(
            _partial_pooled_gradients, *both, x, weight, bias, statistics, partials, **switches
        )
        exchange_sums(windows, partials, ctx.counts, ctx.processes)
        windows.second(
            _input_gradient_of_windows,
            *(*both, x, dx, weight, bias, statistics, partials, d_weight, d_bias),
            **switches,
        )
        return dx, d_weight, d_bias, *(None,) * 7


def fused_pooled_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    num_batches_tracked: Tensor,
    groups: tuple[int, ...],
    momentum: float,
    eps: float,
    processes: Processes = ALONE,
) -> tuple[Tensor, Tensor]:
    """max_pool2d(relu(norm(x)), 2, 2, 1) twice on one memory; what `fused_norm.fits` is taken."""
    out: tuple[Tensor, Tensor] = _FusedPooledNorm.apply(
        *(x, weight, bias, running_mean, running_var, num_batches_tracked),
        *(groups, momentum, eps, processes),
    )
    return out
