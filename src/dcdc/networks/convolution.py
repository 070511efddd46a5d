"""Convolutions whose weight gradients are computed while the rest of the backward pass goes on.

Nothing waits for a weight's gradient until the optimiser, while the gradient of the input is what
the layer below waits for. On a GPU the two run at the same time, on two streams, and the small
layers of a deep backbone together fill a chip that each alone leaves half idle.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_DILATION, _OUTPUT_PADDING, _CONV_GROUPS = (1, 1), (0, 0), 1
_WIDEST_BLOCK = 16
"""Channels that oneDNN takes at a time on a processor with AVX-512; 8 with AVX2."""


class WeightGradientStream:
    """A second stream of work, and what it still reads; without a stream all runs in line."""

    def __init__(self, stream: "torch.cuda.Stream | None" = None) -> None:
        self.stream = stream
        self._in_use: list[Tensor] = []

    @classmethod
    def on(cls, device: torch.device) -> "WeightGradientStream":
        return cls(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]

    def work(self, *needed: Tensor) -> AbstractContextManager[object]:
        """Runs the block on the second stream, after everything asked for so far."""
        if self.stream is None:
            return nullcontext()
        self._in_use += needed  # their memory must not be given to others meanwhile
        self.stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self.stream)

    def join(self) -> None:
        """What follows waits for the second stream."""
        if self.stream is not None and self._in_use:
            torch.cuda.current_stream().wait_stream(self.stream)
        self._in_use.clear()


class Convolution(nn.Conv2d):
    """As nn.Conv2d, without bias; `weight_gradients_on` says when it differs."""

    gradient_stream: WeightGradientStream | None = None

    def __init__(self, in_channels: int, out_channels: int, side: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, side, stride, padding=side // 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x, stride = self._safely_strided(x)
        if self.gradient_stream is None:
            return torch.conv2d(x, self.weight, None, stride, self.padding)
        return _StreamedConvolution.apply(x, self.weight, self, stride)  # type: ignore[no-any-return, no-untyped-call]

    def _safely_strided(self, x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        """Input and stride of the same product, such that its gradient stays in its memory.

        For the weight's gradient of a strided 1x1 convolution with the channels last, oneDNN
        gathers the pixels in a workspace that it takes for a whole block of channels wide. With
        fewer it writes past the end: wrong gradients, or the process dies
        (https://github.com/uxlfoundation/oneDNN/issues/6035). Gathered here, at stride 1, none are.
        """
        narrow = self.kernel_size == (1, 1) and self.in_channels < _WIDEST_BLOCK
        if not narrow or self.stride == (1, 1) or x.device.type != "cpu":
            return x, self.stride
        down, across = self.stride
        return x[:, :, ::down, ::across], (1, 1)

    def receive(self, gradient: Tensor) -> None:
        """Puts the weight's gradient in its place: autograd would touch it too early."""
        gradient = gradient.to(self.weight.dtype)
        held = self.weight.grad
        self.weight.grad = gradient if held is None else held + gradient


@contextmanager
def weight_gradients_on(network: nn.Module, stream: WeightGradientStream) -> Iterator[None]:
    """For the forward and the backward pass; at its end every gradient is there."""
    layers = [layer for layer in network.modules() if isinstance(layer, Convolution)]
    for layer in layers:
        layer.gradient_stream = stream
    try:
        yield
    finally:
        for layer in layers:
            layer.gradient_stream = None
        stream.join()


def in_product(weight: Tensor, x: Tensor) -> Tensor:
    """The weight in the precision in which a product with x takes it."""
    kind = x.device.type
    return weight.to(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype)


class _StreamedConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, layer: Convolution, stride: tuple[int, ...]
    ) -> Tensor:
        weight = in_product(weight, x)
        x = x.to(weight.dtype)
        ctx.save_for_backward(x, weight)
        ctx.layer, ctx.gradient_stream, ctx.stride = layer, layer.gradient_stream, stride
        return torch.conv2d(x, weight, None, stride, layer.padding)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        x, weight = ctx.saved_tensors
        layer = ctx.layer

        def gradient(of_input: bool) -> Tensor:
            wanted = (of_input, not of_input, False)
            found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
                *(grad, x, weight, None, ctx.stride, layer.padding),
                *(_DILATION, False, _OUTPUT_PADDING, _CONV_GROUPS, wanted),
            )
            return found[0 if of_input else 1]

        with ctx.gradient_stream.work(grad, x, weight):
            layer.receive(gradient(of_input=False))
        return gradient(of_input=True) if ctx.needs_input_grad[0] else None, None, None, None
