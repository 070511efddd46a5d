"""A frozen backbone made quicker: its batch norms folded into the convolutions before them.

With their own stored statistics a convolution and its norm are one linear map. Features stay the
same up to rounding; EfficientNet-Lite0 on a CPU gains about 40 %.
"""

import copy
from collections import Counter

import torch
from torch import nn
from torch.fx import Graph, Node, Tracer
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.fusion import fuse_conv_bn_eval

from dcdc.networks.convert_norms import GroupedNorm


def frozen_for_inference(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode without gradients, folded where its graph can be traced.

    Convolutions are in channels_last, the quickest layout. The copy is not to be trained.
    """
    frozen = copy.deepcopy(module).eval()
    for convolution, norm in _pairs(frozen):
        layer, scale = frozen.get_submodule(convolution), frozen.get_submodule(norm)
        assert isinstance(layer, nn.Conv2d)
        assert isinstance(scale, nn.BatchNorm2d)
        frozen.set_submodule(convolution, fuse_conv_bn_eval(layer, scale))
        frozen.set_submodule(norm, nn.Identity())
    frozen.requires_grad_(False)
    quickest: nn.Module = frozen.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return quickest


class _Layers(Tracer):
    """Sees convolutions and norms whole, whatever their class does inside."""

    def is_leaf_module(self, module: nn.Module, qualified_name: str) -> bool:
        whole = isinstance(module, nn.Conv2d | _BatchNorm) or not _has_convolutions(module)
        return whole or super().is_leaf_module(module, qualified_name)


def _pairs(module: nn.Module) -> list[tuple[str, str]]:
    """Names of convolutions whose output goes to a batch norm and nowhere else, and of the norm."""
    graph = _traced(module) if _has_convolutions(module) else None
    calls = [] if graph is None else [node for node in graph.nodes if node.op == "call_module"]
    times = Counter(str(node.target) for node in calls)
    pairs = []
    for node in calls:
        source = node.args[0] if node.args else None
        if not isinstance(source, Node) or source.op != "call_module" or len(source.users) != 1:
            continue
        pair = str(source.target), str(node.target)
        shared = any(times[name] > 1 for name in pair)  # a layer that is called twice
        if not shared and _folds(*map(module.get_submodule, pair)):
            pairs.append(pair)
    return pairs


def _has_convolutions(module: nn.Module) -> bool:
    return any(isinstance(layer, nn.Conv2d) for layer in module.modules())


def _traced(module: nn.Module) -> Graph | None:
    try:
        return _Layers().trace(module)
    except Exception:  # its path depends on values: it stays as it is
        return None


def _folds(convolution: nn.Module, norm: nn.Module) -> bool:
    # a subclass of a library may do more: timm's have the activation inside
    kind = type(norm)
    plain = kind.__bases__[1] if isinstance(norm, GroupedNorm) else kind
    return (
        isinstance(convolution, nn.Conv2d)
        and isinstance(norm, nn.BatchNorm2d)
        and plain is nn.BatchNorm2d
        and norm.running_mean is not None
    )
