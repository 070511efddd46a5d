# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""Batch norm per copy group, residual add and ReLU as Triton kernels: two forward, two backward.

Shapes: N images of C channels and H x W pixels, channels last, seen as R = N * H * W rows of C.
A group's rows are cut into chunks of a few tiles, and no chunk holds rows of two groups. The first
kernel of a pair leaves two numbers per chunk and channel; every program of the second folds those
of its own group in one fixed order, so the same inputs give the same bits.

Read -> written, kernel by kernel: x -> nothing; x, residual -> y. Backward: dy, x -> nothing;
dy, x -> dx, the ReLU's mask computed again from x. Backward of residual and ReLU: dy, x, y ->
d_residual; d_residual, x -> dx, the mask taken from y, which the next layer keeps anyway.

Where processes share a batch, they exchange what the first kernel of a pair leaves
(shared_norm.py).

Forked, y is handed out twice on one memory, for two readers: the first backward kernel then reads
the gradients of both and adds them, instead of a kernel of autograd's that would write their sum.
"""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from dcdc.networks.fused_norm_kernels import (
    _apply,
    _input_gradient,
    _partial_gradients,
    _partial_statistics,
)
from dcdc.networks.shared_norm import (
    Shared,
    keep_running,
    share_statistics_between,
    share_sums_between,
)
from dcdc.runtime.device import can_build
from dcdc.runtime.kernels_ahead import launch
from dcdc.runtime.processes import ALONE, Processes

MOST_GROUPS = 4
"""The groups' ends are plain numbers among a kernel's arguments: no copy from the host."""
_BLOCK_CHANNELS = 32
_BLOCK_CHANNELS_OF_LARGE = 64
_LARGE = 2**24
"""Bytes from which a tensor's rows are read in whole lines of 128 bytes: the memory's rate counts
there, and how many chunks a program folds does not."""
_FORWARD_BYTES = 16384
_BACKWARD_BYTES = 8192
"""Of a tile: more loads at once, fewer registers left; backward holds two or three tiles."""
_PROGRAMS_PER_PROCESSOR = 2
_MOST_CHUNKS = 256


@dataclass(frozen=True)
class Tiles:
    """How R x C is shared out: programs of `tiles` tiles of `block_rows` x `block_channels`."""

    block_rows: int
    block_channels: int
    tiles: int
    chunks: int
    columns: int
    fold: int
    """A power of two that no group's chunks exceed."""
    warps: int


@cache
def plan(
    group_rows: tuple[int, ...],
    channels: int,
    itemsize: int,
    block_bytes: int,
    processors: int,
    most_channels: int = _BLOCK_CHANNELS,
    per_processor: int = 0,
) -> Tiles:
    """Programs enough to keep every processor busy, and few chunks for each of them to fold."""
    block_channels = min(most_channels, triton.next_power_of_2(channels))
    columns = triton.cdiv(channels, block_channels)

    def chunks(rows: int) -> list[int]:
        return [triton.cdiv(of_group, rows) for of_group in group_rows]

    programs = (per_processor or _PROGRAMS_PER_PROCESSOR) * processors
    block_rows = block_bytes // (most_channels * itemsize)
    while block_rows > 32 and sum(chunks(block_rows)) * columns < 0.75 * programs:
        block_rows //= 2
    n_tiles = sum(chunks(block_rows))
    tiles = max(1, round(n_tiles * columns / programs), triton.cdiv(n_tiles, _MOST_CHUNKS))
    return Tiles(
        block_rows,
        block_channels,
        tiles,
        chunks=sum(chunks(block_rows * tiles)),
        columns=columns,
        fold=triton.next_power_of_2(max(chunks(block_rows * tiles))),
        warps=8 if block_rows * block_channels * itemsize >= block_bytes else 4,
    )


@dataclass(frozen=True)
class KernelPair:
    """Two kernels that share tiles, groups and the workspace between them."""

    tiles: Tiles
    ends: tuple[int, ...]
    n_groups: int
    n_channels: int
    device: torch.device

    @classmethod
    def over(
        cls,
        x: Tensor,
        groups: tuple[int, ...],
        block_bytes: int,
        most_channels: int = 0,
        per_processor: int = 0,
    ) -> "KernelPair":
        """`most_channels` of a tile, or as many as suit the tensor; `per_processor` programs, or as
        many as are best for most."""
        rows = tuple(images * x.shape[2] * x.shape[3] for images in groups)
        if not most_channels:
            is_large = x.numel() * x.element_size() >= _LARGE
            most_channels = _BLOCK_CHANNELS_OF_LARGE if is_large else _BLOCK_CHANNELS
        ends = tuple(accumulate(rows))
        return cls(
            plan(
                *(rows, x.shape[1], x.element_size(), block_bytes),
                *(_processors(x.device), most_channels, per_processor),
            ),
            ends + ends[-1:] * (MOST_GROUPS - len(ends)),
            len(groups),
            x.shape[1],
            x.device,
        )

    @property
    def rows(self) -> tuple[int, ...]:
        """Of each group."""
        ends = self.ends[: self.n_groups]
        return tuple(end - begin for begin, end in zip((0, *ends), ends, strict=False))

    @property
    def chunk_rows(self) -> int:
        return self.tiles.block_rows * self.tiles.tiles

    def workspace(self) -> Tensor:
        padded = self.tiles.columns * self.tiles.block_channels
        size = (self.n_groups, 2, padded, self.tiles.fold)
        return torch.empty(size, dtype=torch.float32, device=self.device)

    def first(self, kernel: Any, *arguments: object, **switches: int) -> None:
        self._launch(kernel, self.tiles.chunks, arguments, switches)

    def second(self, kernel: Any, *arguments: object, **switches: int) -> None:
        """May start before the first has ended: it loads what was there before, then waits."""
        self.last(kernel, self.tiles.chunks + 1, *arguments, **switches)

    def last(self, kernel: Any, programs: int, *arguments: object, **switches: int) -> None:
        """As a second kernel, of as many programs for each column."""
        early = {"launch_pdl": True} if _can_overlap(self.device) else {}
        options = switches | early | {"groups": self.n_groups}
        self._launch(kernel, programs, arguments, options)

    def _launch(
        self, kernel: Any, chunks: int, arguments: tuple[object, ...], options: dict[str, Any]
    ) -> None:
        own = {
            "channels": self.n_channels,
            "block_rows": self.tiles.block_rows,
            "block_channels": self.tiles.block_channels,
            "tiles": self.tiles.tiles,
            "fold": self.tiles.fold,
            "overlap": _can_overlap(self.device),
            "num_warps": self.tiles.warps,
            "enable_fp_fusion": True,
        }
        grid = (chunks * self.tiles.columns,)
        launch(kernel, grid, *arguments, *self.ends, **(own | options))


@cache
def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


@cache
def _can_overlap(device: torch.device) -> bool:
    """Whether a kernel may start before the one it waits for has ended: from Hopper on."""
    on_nvidia = device.type == "cuda" and torch.version.cuda is not None
    return on_nvidia and torch.cuda.get_device_capability(device) >= (9, 0)


class _FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        residual: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        num_batches_tracked: Tensor,
        groups: tuple[int, ...],
        relu: bool,
        momentum: float,
        eps: float,
        fork: bool,
        processes: Processes,
    ) -> Tensor | tuple[Tensor, Tensor]:
        pair = KernelPair.over(x, groups, _FORWARD_BYTES)
        partials = pair.workspace()
        size = (len(groups), 2, x.shape[1])
        statistics = torch.empty(size, dtype=torch.float32, device=x.device)
        y = torch.empty_like(x)
        add = residual is not None
        with torch.cuda.device_of(x):
            pair.first(_partial_statistics, x, partials)
            shared = exchanged(pair, partials, processes)
            buffers = (running_mean, running_var, num_batches_tracked)
            pair.second(
                _apply,
                *(x, x if residual is None else residual, y, weight, bias),
                *kept(buffers, shared, momentum),
                *(partials, statistics, momentum, eps),
                add=add,
                relu=relu,
            )
        ctx.groups, ctx.add, ctx.relu, ctx.processes = groups, add, relu, processes
        ctx.counts = None if shared is None else shared.counts
        ctx.save_for_backward(x, weight, bias, statistics, y if add and relu else None)
        ctx.set_materialize_grads(False)
        return (y, y.detach()) if fork else y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        x, weight, bias, statistics, y = ctx.saved_tensors
        dy, dy2 = given(slopes)
        pair = KernelPair.over(x, ctx.groups, _BACKWARD_BYTES)
        partials = pair.workspace()
        by_x, by_y, two = ctx.relu and not ctx.add, ctx.relu and ctx.add, dy2 is not None
        open_dy = torch.empty_like(x) if by_y or two else dy
        dx, d_weight, d_bias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(bias)
        pair.first(
            _partial_gradients,
            *(dy, dy if dy2 is None else dy2, x, x if y is None else y, open_dy),
            *(weight, bias, statistics, partials),
            two=two,
            mask_by_x=by_x,
            mask_by_y=by_y,
        )
        exchange_sums(pair, partials, ctx.counts, ctx.processes)
        pair.second(
            _input_gradient,
            *(open_dy, x, dx, weight, bias, statistics, partials, d_weight, d_bias),
            mask_by_x=by_x,
            await_dy=by_y or two,
        )
        return dx, open_dy if ctx.add else None, d_weight, d_bias, *(None,) * 9


def exchanged(pair: KernelPair, partials: Tensor, processes: Processes) -> Shared | None:
    if not processes.joined:
        return None
    return share_statistics_between(partials, pair.rows, pair.chunk_rows, processes)


def kept(
    buffers: tuple[Tensor, Tensor, Tensor], shared: Shared | None, momentum: float
) -> tuple[Tensor, ...]:
    """What the second kernel may write running statistics to: those of all are written here."""
    if shared is None:
        return buffers
    keep_running(buffers, shared, momentum)
    return tuple(torch.empty_like(buffer) for buffer in buffers)


def exchange_sums(
    pair: KernelPair, partials: Tensor, counts: Tensor | None, processes: Processes
) -> None:
    """`counts`: rows of all processes, G x 1, of the kernels' own kind of rows."""
    if counts is not None:
        share_sums_between(partials, pair.rows, pair.chunk_rows, counts, processes)


def given(slopes: tuple[Tensor | None, ...]) -> tuple[Tensor, Tensor | None]:
    """The gradients that came, channels last: of two outputs either may have had no reader."""
    came = [slope for slope in slopes if slope is not None]
    first, *rest = (slope.contiguous(memory_format=torch.channels_last) for slope in came)
    return first, rest[0] if rest else None


def fits(x: Tensor, residual: Tensor | None, groups: tuple[int, ...]) -> bool:
    """Whether the kernels can take these; wherever they lie."""
    return (
        x.dim() == 4
        and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and x.is_contiguous(memory_format=torch.channels_last)
        and (residual is None or _alike(x, residual))
        and len(groups) <= MOST_GROUPS
        and min(groups) * x.shape[2] * x.shape[3] > 1
    )


def _alike(x: Tensor, residual: Tensor) -> bool:
    same = (residual.dtype, residual.shape, residual.device) == (x.dtype, x.shape, x.device)
    return same and residual.is_contiguous(memory_format=torch.channels_last)


def fused_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    num_batches_tracked: Tensor,
    groups: tuple[int, ...],
    residual: Tensor | None,
    relu: bool,
    momentum: float,
    eps: float,
    fork: bool = False,
    processes: Processes = ALONE,
) -> Tensor | tuple[Tensor, Tensor]:
    """norm(x) (+ residual), then ReLU or not; x and residual channels last, the rest float32.

    `groups`: images of each group, at least two rows a group; the buffers are updated in place.
    `fork`: the output twice, on the same memory. `processes`: whose batches the statistics are of.
    """
    out: Tensor | tuple[Tensor, Tensor] = _FusedNorm.apply(
        *(x, residual, weight, bias, running_mean, running_var, num_batches_tracked),
        *(groups, relu, momentum, eps, fork, processes),
    )
    return out


@cache
def is_available() -> bool:
    def launch() -> None:
        x = torch.zeros((2, 1, 1, 1), device="cuda")
        pair = KernelPair.over(x, (2,), _FORWARD_BYTES)
        pair.first(_partial_statistics, x, pair.workspace())

    is_compiled = isinstance(_partial_statistics, triton.JITFunction)
    return is_compiled and can_build("the fused batch norm", launch)
