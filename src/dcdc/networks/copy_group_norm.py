"""Batch norm with statistics per copy group, and the residual add, ReLU or pool around it.

One pass over several copy groups, each a run of images along the batch, then means what a pass for
each group means. Any module's batch norms become such ones, in the manner of
`torch.nn.SyncBatchNorm.convert_sync_batchnorm`:

    backbone = convert_copy_group_norm(torchvision.models.resnet18())

Norms that look at one image alone (layer, group and instance norms) need nothing. Shapes: B images,
C channels, H x W pixels, D features.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin

from dcdc.errors import InputError
from dcdc.networks.convolution import Convolution
from dcdc.networks.shared_norm import shared_norm
from dcdc.runtime.processes import ALONE, Processes

_FUSED_DEVICE = "cuda"


@dataclass(frozen=True)
class _Kernels:
    norm: Callable[..., Tensor | tuple[Tensor, Tensor]]
    norm_fits: Callable[[Tensor, Tensor | None, tuple[int, ...]], bool]
    stem: Callable[..., tuple[Tensor, Tensor]]
    stem_fits: Callable[[Tensor, Convolution, tuple[int, ...]], bool]


class CopyGroups:
    """What every norm with statistics per copy group knows of the batch."""

    groups: tuple[int, ...] = ()
    """Images of each copy group; () is one group. Evaluation does not look at it."""
    processes: Processes = ALONE
    """Whose batches the statistics are of."""


class CopyGroupNorm(CopyGroups, nn.BatchNorm2d):
    """Of B x C x H x W; the parameters, buffers and arithmetic of nn.BatchNorm2d."""

    def forward(  # type: ignore[override]
        self, x: Tensor, residual: Tensor | None = None, relu: bool = True, fork: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Forked, the output comes twice, one for each of two readers.

        A device then adds the gradients of the two while it reads them.
        """
        kernels = self._kernels(x)
        if kernels is not None and x.shape[1] == self.num_features:
            groups = self.groups or (len(x),)  # here: a length that is asked for is a fixed one
            if kernels.norm_fits(x, residual, groups):
                return kernels.norm(
                    *(x, *self._state(), groups, residual, relu, self.momentum, self.eps, fork),
                    processes=self.processes,
                )
        y = _add_and_relu(self._normed(x), residual, relu)
        return (y, y) if fork else y

    def _normed(self, x: Tensor) -> Tensor:
        if self.training and self.processes.joined:
            return _over_processes(self, x)
        return by_group(super().forward, x, self.groups if self.training else ())

    def _kernels(self, x: Tensor) -> _Kernels | None:
        """None where there are none, or not for this layer."""
        if not self.training or x.device.type != _FUSED_DEVICE:
            return None
        _checked(self.groups, x)
        plain = (
            self.affine
            and self.weight.dtype == torch.float32
            and self.momentum is not None
            and all(tensor is not None for tensor in self._state())
        )
        return _kernels() if plain else None

    def _state(self) -> tuple[Tensor | None, ...]:
        buffers = (self.running_mean, self.running_var, self.num_batches_tracked)
        return self.weight, self.bias, *buffers


class PooledNorm(CopyGroupNorm):
    """Of a convolution of images, then ReLU and a 2x2 max-pool with padding 1, forked."""

    def forward(  # type: ignore[override]
        self, images: Tensor, convolution: Convolution
    ) -> tuple[Tensor, Tensor]:
        """B x C x H x W to B x D x H // 2 + 1 x W // 2 + 1."""
        kernels = self._kernels(images)
        if kernels is not None:
            groups = self.groups or (len(images),)
            if kernels.stem_fits(images, convolution, groups):
                settings = (groups, self.momentum, self.eps)
                return kernels.stem(
                    *(images, convolution, *self._state(), *settings), processes=self.processes
                )
        y = super().forward(convolution(images))
        assert isinstance(y, Tensor)
        y = F.max_pool2d(y, kernel_size=2, stride=2, padding=1)
        return y, y


class CopyGroupNorm1d(CopyGroups, nn.BatchNorm1d):
    """Of B x D."""

    def forward(self, x: Tensor, residual: Tensor | None = None, relu: bool = True) -> Tensor:
        if self.training and self.processes.joined:
            return _add_and_relu(_over_processes(self, x), residual, relu)
        groups = self.groups if self.training else ()
        return _add_and_relu(by_group(super().forward, x, groups), residual, relu)


def share_statistics(network: nn.Module, processes: Processes) -> None:
    """From now on every copy-group norm of the network sees the batch of all processes."""
    for module in network.modules():
        if isinstance(module, CopyGroups):
            module.processes = processes


@contextmanager
def copy_groups(network: nn.Module, sizes: tuple[int, ...]) -> Iterator[None]:
    """Inside the block, every copy-group norm of the network sees its batch as these groups."""
    norms = [module for module in network.modules() if isinstance(module, CopyGroups)]
    before = [norm.groups for norm in norms]
    try:
        for norm in norms:
            norm.groups = sizes
        yield
    finally:
        for norm, groups in zip(norms, before, strict=True):
            norm.groups = groups


def by_group(norm: Callable[[Tensor], Tensor], x: Tensor, groups: tuple[int, ...]) -> Tensor:
    """Each group through the norm alone."""
    if not _checked(groups, x):
        return norm(x)
    return torch.cat([norm(part) for part in torch.split(x, list(groups))])


def _over_processes(norm: CopyGroupNorm | CopyGroupNorm1d, x: Tensor) -> Tensor:
    """Running statistics go on group by group, as if each had come alone."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    groups = _checked(norm.groups, x) or (len(x),)
    y, means, variances = shared_norm(x, norm.weight, norm.bias, norm.eps, groups, norm.processes)
    with torch.no_grad():
        for mean, variance in zip(means, variances, strict=True):
            norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), norm.momentum)
            norm.running_var.lerp_(variance.to(norm.running_var.dtype), norm.momentum)
            norm.num_batches_tracked += 1
    return y


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
        from dcdc.networks.fused_stem import fits as stem_fits
        from dcdc.networks.fused_stem import fused_stem
    except ImportError:
        return None
    return _Kernels(fused_norm, fits, fused_stem, stem_fits) if is_available() else None


class GroupedNorm(CopyGroups):
    """Mixed into a batch norm's own class: its forward pass, a group after the other."""

    training: bool

    def forward(self, x: Tensor) -> Tensor:
        plain: Any = super().forward  # type: ignore[misc]
        if not self.training:
            y: Tensor = plain(x)
            return y
        if self.processes.joined:
            raise InputError(
                f"batch statistics of {type(self).__name__} are of one process alone",
                remedy="train in one process, or take a backbone without batch norms",
            )
        return by_group(plain, x, self.groups)


def convert_copy_group_norm(module: nn.Module) -> nn.Module:
    """Every batch norm in `module` (in place), and `module` itself, where it is one."""
    for name, part in module.named_modules():
        if is_mixing(part):
            kind = type(part)
            if isinstance(part, LazyModuleMixin):  # its first batch would make it a plain one again
                raise InputError(
                    f"{name or kind.__name__} ({kind.__name__}) has no size yet",
                    remedy="pass a batch through the backbone first",
                )
            part.__class__ = type(f"Grouped{kind.__name__}", (GroupedNorm, kind), {})
    return module


def is_mixing(module: nn.Module) -> bool:
    """Whether it would take its statistics over original and perturbed copies together."""
    known = isinstance(module, CopyGroupNorm | CopyGroupNorm1d | GroupedNorm)
    return isinstance(module, _BatchNorm) and not known


def require_copy_group_norms(module: nn.Module) -> None:
    """Refuses a norm that would mix copies: it must not happen silently."""
    for name, part in module.named_modules():
        if is_mixing(part):
            raise InputError(
                f"the backbone's {name or type(part).__name__} ({type(part).__name__}) would mix "
                "the statistics of original and perturbed copies",
                remedy="call dcdc.networks.convert_copy_group_norm(backbone) first",
            )
