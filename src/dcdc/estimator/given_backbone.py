"""The parameter `backbone`: a name, or a module that becomes known by one."""

from typing import Any

from torch import nn

from dcdc.errors import InputError
from dcdc.networks import Backbone, register_module
from dcdc.networks.pretrained.python_modules import SCHEME


def spec_of(backbone: Any) -> str | None:
    """As a config has it; None: whatever the images suggest."""
    if backbone is None or isinstance(backbone, str):
        return backbone
    if is_module(backbone):
        return register_module(backbone)
    raise InputError(
        f"backbone is a {type(backbone).__name__}: give a name such as 'efficientnet-lite0', an "
        "nn.Module or a dcdc.networks.Backbone"
    )


def is_module(backbone: Any) -> bool:
    """Known to this process alone, so that it must be sent to others."""
    return isinstance(backbone, nn.Module | Backbone)


def make_known(backbone: Any, spec: str) -> None:
    """Where a fitted estimator comes from another process."""
    scheme, _, name = spec.partition(":")
    if is_module(backbone) and scheme == SCHEME:
        register_module(backbone, name=name)
