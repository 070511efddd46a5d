# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""The stem as Triton kernels: 3x3 convolution, batch norm per copy group, ReLU, 2x2 max-pool.

Shapes: N images of `depth` channels and H x W pixels, channels last; y and dy of C channels and
H // 2 + 1 x W // 2 + 1 windows. The convolution of so few channels costs less than reading its
output, the largest tensor of the network: it is done again in every kernel and never written. The
pool's windows do not overlap, so a program that has a window has all that its four pixels need.

Read -> written: images -> moments of their patches; images -> y. Backward: images, dy, dy2 -> parts
of the filters' gradient; those and the moments -> the gradient. What the norm's statistics take
back is linear in the convolved pixels, and so in the patches: it needs no pass over the pixels. The
output is forked, as in fused_norm.py. The images themselves get no gradient.

The statistics are of the convolution in float32, which is not rounded to the images' type.
"""

from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from dcdc.networks import fused_norm
from dcdc.networks.convolution import Convolution, precision_of_product
from dcdc.networks.fused_norm import KernelPair, exchange_sums, exchanged, given, kept
from dcdc.networks.fused_stem_backward import _fold_filter_gradients, _partial_gradients_of_stem
from dcdc.networks.fused_stem_forward import _convolve_apply_and_pool, _partial_statistics_of_stem
from dcdc.runtime.processes import ALONE, Processes

MOST_DEPTH = 4
MOST_CHANNELS = 64
"""Of a tile, which holds all channels."""
_PIXEL_BYTES = 65536
"""Of a tile of convolved pixels, were they written."""
_WINDOW_BYTES = 4096
"""Of a tile of windows, which has four such tiles of pixels."""
_WARPS = 8
_BACKWARD_WARPS = 4
"""In half precision each has 16 channels, and more than four would do the same work twice."""
_STATISTICS_PROGRAMS = 1
"""For each processor: every program of the next kernel folds what all of them leave."""


class _FusedStem(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        filters: Tensor,
        layer: Convolution,
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
        filters = filters.to(precision_of_product(images))
        images = images.to(filters.dtype)
        n_images, depth, height, width = images.shape
        channels = len(filters)
        y = torch.empty(
            (n_images, channels, height // 2 + 1, width // 2 + 1),
            dtype=images.dtype,
            device=images.device,
            memory_format=torch.channels_last,
        )
        convolved = images[:, :1].expand(-1, channels, -1, -1)  # its shape alone
        pixels = KernelPair.over(
            convolved, groups, _PIXEL_BYTES, MOST_CHANNELS, _STATISTICS_PROGRAMS
        )
        windows = KernelPair.over(y, groups, _WINDOW_BYTES, MOST_CHANNELS)
        partials = pixels.workspace()
        reach = _block_reach(height, width, depth)
        size = (pixels.tiles.chunks, reach + 1, reach)
        moments = torch.empty(size, dtype=torch.float32, device=images.device)
        size = (len(groups), 2, channels)
        statistics = torch.empty(size, dtype=torch.float32, device=images.device)
        shape = {"depth": depth, "height": height, "width": width}
        with torch.cuda.device_of(images):
            pixels.first(
                _partial_statistics_of_stem,
                *(images, filters, partials, moments),
                reach=reach,
                **shape,
            )
            shared = exchanged(pixels, partials, processes)
            buffers = (running_mean, running_var, num_batches_tracked)
            windows.second(
                _convolve_apply_and_pool,
                *(images, filters, y, weight, bias),
                *kept(buffers, shared, momentum),
                *(partials, statistics, momentum, eps),
                reach=_reach(4, 4, depth),
                pixels=pixels.chunk_rows,
                fold=pixels.tiles.fold,
                num_warps=_WARPS,
                **shape,
            )
        ctx.groups, ctx.layer, ctx.gradient_stream = groups, layer, layer.gradient_stream
        ctx.processes, ctx.counts, ctx.pixels = processes, None, pixels
        if shared is not None:
            # The backward kernels' rows are windows; only their shares count.
            ctx.counts = shared.counts * (windows.rows[0] / pixels.rows[0])
        ctx.save_for_backward(images, filters, weight, bias, statistics, moments)
        ctx.set_materialize_grads(False)
        return y, y.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        images, filters, weight, bias, statistics, moments = ctx.saved_tensors
        dy, dy2 = given(slopes)
        windows = KernelPair.over(dy, ctx.groups, _WINDOW_BYTES, MOST_CHANNELS)
        partials = windows.workspace()
        _, depth, height, width = images.shape
        shape = {"depth": depth, "height": height, "width": width, "reach": _reach(4, 4, depth)}
        size = (windows.tiles.chunks, 4, shape["reach"], windows.tiles.block_channels)
        of_filters = torch.empty(size, dtype=torch.float32, device=dy.device)
        d_filters = torch.empty_like(filters)
        d_weight, d_bias = torch.empty_like(weight), torch.empty_like(bias)
        windows.first(
            _partial_gradients_of_stem,
            *(dy, dy if dy2 is None else dy2, images, filters, weight, bias, statistics),
            *(partials, of_filters),
            two=dy2 is not None,
            num_warps=_BACKWARD_WARPS if dy.element_size() == 2 else _WARPS,
            **shape,
        )
        exchange_sums(windows, partials, ctx.counts, ctx.processes)
        windows.last(
            _fold_filter_gradients,
            9 * depth + 1,
            *(of_filters, moments, filters, weight, statistics, partials),
            *(d_filters, d_weight, d_bias),
            pixels=ctx.pixels.chunk_rows,
            pixel_reach=_block_reach(height, width, depth),
            pixel_fold=ctx.pixels.tiles.fold,
            num_warps=8,
            **shape,
        )
        if ctx.gradient_stream is None:
            return None, d_filters.to(ctx.layer.weight.dtype), *_rest(d_weight, d_bias)
        with ctx.gradient_stream.work(d_filters):
            ctx.gradient_stream.take(ctx.layer, d_filters)
        return None, None, *_rest(d_weight, d_bias)


def _rest(d_weight: Tensor, d_bias: Tensor) -> tuple[Tensor | None, ...]:
    return None, d_weight, d_bias, *(None,) * 7


def _reach(tall: int, wide: int, depth: int) -> int:
    """A patch's numbers, as many as a product can have."""
    return max(16, int(triton.next_power_of_2(tall * wide * depth)))


def _block_reach(height: int, width: int, depth: int) -> int:
    """Of the first kernel's patches, around blocks of two by two pixels where those fit."""
    return _reach(4 - height % 2, 4 - width % 2, depth)


def fits(images: Tensor, layer: Convolution, groups: tuple[int, ...]) -> bool:
    return (
        fused_norm.fits(images, None, groups)
        and not images.requires_grad
        and images.shape[1] <= MOST_DEPTH
        and 16 <= layer.out_channels <= MOST_CHANNELS
        and layer.kernel_size == (3, 3)
        and layer.stride == (1, 1)
        and layer.weight.is_contiguous(memory_format=torch.channels_last)
    )


def fused_stem(
    images: Tensor,
    layer: Convolution,
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
    """max_pool2d(relu(norm(layer(images))), 2, 2, 1) twice on one memory, of what `fits`."""
    out: tuple[Tensor, Tensor] = _FusedStem.apply(
        *(images, layer.weight, layer, weight, bias, running_mean, running_var),
        *(num_batches_tracked, groups, momentum, eps, processes),
    )
    return out
