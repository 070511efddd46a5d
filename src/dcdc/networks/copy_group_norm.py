"""Batch norm with statistics per copy group, and the residual add and ReLU that follow it.

One pass over several copy groups, each a run of images along the batch, then means what a pass for
each group means. Shapes: B images, C channels, H x W pixels, D features.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_FUSED_DEVICE = "cuda"


@dataclass(frozen=True)
class _Kernels:
    fits: Callable[[Tensor, Tensor | None, tuple[int, ...]], bool]
    fused_norm: Callable[..., Tensor | tuple[Tensor, Tensor]]


class CopyGroupNorm(nn.BatchNorm2d):
    """Of B x C x H x W; the parameters, buffers and arithmetic of nn.BatchNorm2d."""

    groups: tuple[int, ...] = ()
    """Images of each copy group; () is one group. Evaluation does not look at it."""

    def forward(  # type: ignore[override]
        self, x: Tensor, residual: Tensor | None = None, relu: bool = True, fork: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Forked, the output comes twice, one for each of two readers.

        A device then adds the gradients of the two while it reads them.
        """
        if self.training and x.device.type == _FUSED_DEVICE:
            fused = self._fused(x, residual, relu, fork)
            if fused is not None:
                return fused
        groups = self.groups if self.training else ()
        y = _add_and_relu(_by_group(super().forward, x, groups), residual, relu)
        return (y, y) if fork else y

    def _fused(
        self, x: Tensor, residual: Tensor | None, relu: bool, fork: bool
    ) -> Tensor | tuple[Tensor, Tensor] | None:
        """None where the kernels cannot do it."""
        groups = _checked(self.groups, x) or (len(x),)
        kernels = _kernels()
        if (
            kernels is None
            or not kernels.fits(x, residual, groups)
            or x.shape[1] != self.num_features
            or not self.affine
            or self.weight.dtype != torch.float32
            or self.momentum is None
            or self.running_mean is None
            or self.running_var is None
            or self.num_batches_tracked is None
        ):
            return None
        return kernels.fused_norm(
            *(x, self.weight, self.bias, self.running_mean, self.running_var),
            *(self.num_batches_tracked, groups, residual, relu, self.momentum, self.eps, fork),
        )


class CopyGroupNorm1d(nn.BatchNorm1d):
    """Of B x D."""

    groups: tuple[int, ...] = ()

    def forward(self, x: Tensor, residual: Tensor | None = None, relu: bool = True) -> Tensor:
        groups = self.groups if self.training else ()
        return _add_and_relu(_by_group(super().forward, x, groups), residual, relu)


@contextmanager
def copy_groups(network: nn.Module, sizes: tuple[int, ...]) -> Iterator[None]:
    """Inside the block, every copy-group norm of the network sees its batch as these groups."""
    kinds = (CopyGroupNorm, CopyGroupNorm1d)
    norms = [module for module in network.modules() if isinstance(module, kinds)]
    before = [norm.groups for norm in norms]
    try:
        for norm in norms:
            norm.groups = sizes
        yield
    finally:
        for norm, groups in zip(norms, before, strict=True):
            norm.groups = groups


def _by_group(norm: Callable[[Tensor], Tensor], x: Tensor, groups: tuple[int, ...]) -> Tensor:
    if not _checked(groups, x):
        return norm(x)
    return torch.cat([norm(part) for part in torch.split(x, list(groups))])


def _add_and_relu(x: Tensor, residual: Tensor | None, relu: bool) -> Tensor:
    if residual is not None:
        x = x + residual
    return F.relu(x, inplace=True) if relu else x  # no backward pass needs what was there


def _checked(groups: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    if groups and (min(groups) < 1 or sum(groups) != len(x)):
        raise ValueError(f"copy groups of {groups} images do not make up a batch of {len(x)}")
    return groups


@cache
def _kernels() -> _Kernels | None:
    """None where Triton is absent or cannot build; imported late, since the CPU never needs it."""
    try:
        from dcdc.networks.fused_norm import fits, fused_norm, is_available
    except ImportError:
        return None
    return _Kernels(fits, fused_norm) if is_available() else None
