"""Any module's batch norms, with statistics per copy group.

    backbone = convert_copy_group_norm(torchvision.models.resnet18())

In the manner of `torch.nn.SyncBatchNorm.convert_sync_batchnorm`. Norms that look at one image alone
(layer, group and instance norms) need nothing.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin

from dcdc.errors import InputError
from dcdc.networks.copy_group_norm import CopyGroupNorm, CopyGroupNorm1d, CopyGroups, by_group


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
