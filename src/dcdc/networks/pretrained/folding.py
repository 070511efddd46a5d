"""A frozen backbone made quicker, with the same features up to rounding.

With stored statistics a convolution and its batch norm are one linear map: the norm is folded into
the weights. Activations then write over their input. On a CPU a batch goes through in small parts,
whose maps stay in the cache and which need no fresh memory.
"""

import copy
from collections import Counter

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node, Tracer
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.fusion import fuse_conv_bn_eval

from dcdc.networks.copy_group_norm import GroupedNorm

PIXELS_AT_ONCE = 8 * 128 * 128
"""Of one part of a batch on a CPU, for each thread: the quickest for EfficientNet-Lite0, at 128 to
224 pixels."""
_ACTIVATIONS = nn.ReLU | nn.ReLU6 | nn.SiLU | nn.Hardswish | nn.LeakyReLU


class Frozen(nn.Module):
    """A convolutional backbone for inference alone."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        n_features = module.n_features
        assert isinstance(n_features, int)
        self.n_features = n_features

    def forward(self, x: Tensor) -> Tensor:
        pixels = PIXELS_AT_ONCE * torch.get_num_threads()
        at_once = max(1, pixels // (x.shape[-1] * x.shape[-2]))
        if x.device.type != "cpu" or len(x) <= at_once:
            whole: Tensor = self.module(x)
            return whole
        return torch.cat([self.module(part) for part in torch.split(x, at_once)])


def frozen_for_inference(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode without gradients, made quicker where its graph can be traced.

    It has `n_features`, and other names of weights than `module`: it is not to be stored.
    """
    frozen = copy.deepcopy(module).eval()
    graph = _traced(frozen)
    folded = [] if graph is None else _pairs(frozen, graph)
    for name in [] if graph is None else _overwriting(frozen, graph):
        frozen.get_submodule(name).inplace = True  # type: ignore[assignment]
    for convolution, norm in folded:
        layer, scale = frozen.get_submodule(convolution), frozen.get_submodule(norm)
        assert isinstance(layer, nn.Conv2d)
        assert isinstance(scale, nn.BatchNorm2d)
        frozen.set_submodule(convolution, fuse_conv_bn_eval(layer, scale))
        frozen.set_submodule(norm, nn.Identity())
    frozen.requires_grad_(False)
    if not folded:
        return frozen
    return Frozen(frozen.to(memory_format=torch.channels_last))  # type: ignore[call-overload]


class _Layers(Tracer):
    """Sees convolutions and norms whole, whatever their class does inside."""

    def is_leaf_module(self, module: nn.Module, qualified_name: str) -> bool:
        whole = isinstance(module, nn.Conv2d | _BatchNorm) or not _has_convolutions(module)
        return whole or super().is_leaf_module(module, qualified_name)


def _traced(module: nn.Module) -> Graph | None:
    if not _has_convolutions(module):
        return None
    try:
        return _Layers().trace(module)
    except Exception:  # its path depends on values: it stays as it is
        return None


def _has_convolutions(module: nn.Module) -> bool:
    return any(isinstance(layer, nn.Conv2d) for layer in module.modules())


def _pairs(module: nn.Module, graph: Graph) -> list[tuple[str, str]]:
    """Names of convolutions whose output goes to a batch norm and nowhere else, and of the norm."""
    times = Counter(str(node.target) for node in _calls(graph))
    pairs = []
    for node in _calls(graph):
        source = _only_source(node)
        if source is None:
            continue
        pair = str(source.target), str(node.target)
        shared = any(times[name] > 1 for name in pair)  # a layer that is called twice
        if not shared and _folds(*map(module.get_submodule, pair)):
            pairs.append(pair)
    return pairs


def _overwriting(module: nn.Module, graph: Graph) -> list[str]:
    """Names of activations that alone read what a convolution or norm made, at every call."""
    safe: dict[str, bool] = {}
    for node in _calls(graph):
        name = str(node.target)
        if isinstance(module.get_submodule(name), _ACTIVATIONS):
            source = _only_source(node)
            made = None if source is None else module.get_submodule(str(source.target))
            own = isinstance(made, nn.Conv2d | nn.BatchNorm2d)
            safe[name] = safe.get(name, True) and own
    return [name for name, is_safe in safe.items() if is_safe]


def _calls(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "call_module"]


def _only_source(node: Node) -> Node | None:
    """The layer whose output this one reads, where nothing else reads it."""
    source = node.args[0] if node.args else None
    if not isinstance(source, Node) or source.op != "call_module" or len(source.users) != 1:
        return None
    return source


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
