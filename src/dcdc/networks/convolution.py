"""Convolutions whose weight gradients are computed while the rest of the backward pass goes on.

Nothing waits for a weight's gradient until the optimiser, while the gradient of the input is what
the layer below waits for. On a GPU the two run at the same time, on two streams, and the small
layers of a deep backbone together fill a chip that each alone leaves half idle. The optimiser's
step of the weights whose gradients are there goes there, too.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_DILATION, _OUTPUT_PADDING, _CONV_GROUPS = (1, 1), (0, 0), 1
_WIDEST_BLOCK = 16
"""Channels that oneDNN takes at a time on a processor with AVX-512; 8 with AVX2."""
_UPDATED_AT_ONCE = 4_000_000
"""Weights, at least. The optimiser takes many at once faster than one by one."""

Update = Callable[[list[nn.Parameter]], None]
"""The optimiser's step of some weights, whose gradients are in place."""


class WeightGradientStream:
    """A second stream of work, and what it still reads; without a stream all runs in line.

    It also turns all weights into the precision of products, and their gradients back, in one
    kernel each: one for every layer would be launched some seventy times a step.
    """

    def __init__(self, stream: "torch.cuda.Stream | None" = None) -> None:
        self.stream = stream
        self._in_use: list[Tensor] = []
        self._layers: list[Convolution] = []
        self._in_product: dict[Convolution, Tensor] = {}
        self._gradients: list[tuple[Convolution, Tensor]] = []
        self._update: Update | None = None
        self._awaited: Counter[Convolution] = Counter()

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

    def begin(self, layers: "Sequence[Convolution]", update: Update | None = None) -> None:
        """Until `join`, during which nobody else may change a weight of theirs, it serves these."""
        self._layers, self._update = list(layers), update
        self._awaited.clear()
        for layer in layers:
            layer.gradient_stream = self

    def in_product(self, layer: "Convolution", x: Tensor) -> Tensor:
        """The layer's weight in the precision in which a product with x takes it."""
        precision = precision_of_product(x)
        if precision == layer.weight.dtype:
            return layer.weight
        if not self._in_product:
            weights = [layer.weight.detach() for layer in self._layers]
            turned = [torch.empty_like(weight, dtype=precision) for weight in weights]
            torch._foreach_copy_(turned, weights)
            self._in_product = dict(zip(self._layers, turned, strict=True))
        return self._in_product[layer]

    def expect(self, layer: "Convolution") -> None:
        """One gradient more of its weight is to come."""
        self._awaited[layer] += 1

    def take(self, layer: "Convolution", gradient: Tensor) -> None:
        """Keeps the weight's gradient until `join`: autograd would touch it too early."""
        self._gradients.append((layer, gradient))
        self._awaited[layer] -= 1
        if self._update is None or not self._in_product:  # weights in their own precision are read
            return
        whole = {layer for layer, _ in self._gradients if self._awaited[layer] == 0}
        if sum(layer.weight.numel() for layer in whole) >= _UPDATED_AT_ONCE:
            self._place([taken for taken in self._gradients if taken[0] in whole])
            self._gradients = [taken for taken in self._gradients if taken[0] not in whole]
            self._update([layer.weight for layer in self._layers if layer in whole])

    def join(self) -> None:
        """What follows waits for the second stream, and every gradient is in its place."""
        for layer in self._layers:
            layer.gradient_stream = None
        if self.stream is not None and self._in_use:
            torch.cuda.current_stream().wait_stream(self.stream)
        self._in_use.clear()
        self._place(self._gradients)
        self._layers, self._in_product, self._gradients, self._update = [], {}, [], None

    def _place(self, taken: "list[tuple[Convolution, Tensor]]") -> None:
        """Where the optimiser looks for them, in the precision of the weights."""
        layers, gradients = [layer for layer, _ in taken], [gradient for _, gradient in taken]
        precision = layers[0].weight.dtype if layers else None
        if any(gradient.dtype != precision for gradient in gradients):
            turned = [torch.empty_like(gradient, dtype=precision) for gradient in gradients]
            torch._foreach_copy_(turned, gradients)
            gradients = turned
        for layer, gradient in zip(layers, gradients, strict=True):
            held = layer.weight.grad
            layer.weight.grad = gradient if held is None else held + gradient


class Convolution(nn.Conv2d):
    """As nn.Conv2d, without bias; `weight_gradients_on` says when it differs."""

    weight: nn.Parameter
    gradient_stream: WeightGradientStream | None = None

    def __init__(self, in_channels: int, out_channels: int, side: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, side, stride, padding=side // 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x, stride = self._safely_strided(x)
        if self.gradient_stream is None:
            return torch.conv2d(x, self.weight, None, stride, self.padding)
        if torch.is_grad_enabled():
            self.gradient_stream.expect(self)
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


@contextmanager
def weight_gradients_on(
    network: nn.Module, stream: WeightGradientStream, update: Update | None = None
) -> Iterator[None]:
    """For the forward and the backward pass; at its end every gradient is there. By `update`
    weights may be changed as soon as theirs are."""
    layers = [layer for layer in network.modules() if isinstance(layer, Convolution)]
    stream.begin(layers, update)
    try:
        yield
    finally:
        stream.join()


def precision_of_product(x: Tensor) -> torch.dtype:
    """In which a product with x is taken."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _StreamedConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, layer: Convolution, stride: tuple[int, ...]
    ) -> Tensor:
        assert layer.gradient_stream is not None
        weight = layer.gradient_stream.in_product(layer, x)
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
            ctx.gradient_stream.take(layer, gradient(of_input=False))
        return gradient(of_input=True) if ctx.needs_input_grad[0] else None, None, None, None
