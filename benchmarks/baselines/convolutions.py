"""The backbone's convolutions, in the shapes that a step gives them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from baselines.batches import copies_shape
from baselines.plain_network import build_plain_network
from dcdc.bench.steps import Case


@dataclass(frozen=True)
class Convolution:
    """Shapes B x C x H x W and D x C x h x w; `how` is stride, padding, dilation and groups."""

    input_shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    how: dict[str, Any]
    is_first: bool
    """Nothing before it learns, so its input needs no gradient."""


def convolutions_of(case: Case) -> list[Convolution]:
    """For all copies of a batch at once."""
    network = build_plain_network(case.config).to("meta")
    found: list[Convolution] = []

    def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(module, nn.Conv2d)
        how = {name: getattr(module, name) for name in ("stride", "padding", "dilation", "groups")}
        shapes = tuple(inputs[0].shape), tuple(module.weight.shape)
        found.append(Convolution(*shapes, how, is_first=not found))

    for module in network.backbone.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_pre_hook(note)
    network(torch.empty(copies_shape(case), device="meta"))
    return found


def forward_and_backward(
    layers: list[Convolution], device: torch.device, dtype: torch.dtype
) -> Callable[[], None]:
    """Runs every layer forwards and backwards, channels last."""

    def tensor(shape: tuple[int, ...]) -> Tensor:
        drawn = torch.randn(shape, device=device, dtype=dtype)
        return drawn.contiguous(memory_format=torch.channels_last)

    prepared = []
    for layer in layers:
        image = tensor(layer.input_shape).requires_grad_(not layer.is_first)
        weight = tensor(layer.weight_shape).requires_grad_()
        with torch.no_grad():
            out_shape = tuple(F.conv2d(image, weight, **layer.how).shape)
        prepared.append((image, weight, layer.how, tensor(out_shape)))

    def run() -> None:
        for image, weight, how, gradient in prepared:
            learning = [leaf for leaf in (image, weight) if leaf.requires_grad]
            torch.autograd.grad(F.conv2d(image, weight, **how), learning, gradient)

    return run
