"""Adam over one flat buffer, with bfloat16 twins of the convolutions' weights kept beside.

The same arithmetic as torch.optim.Adam in float32. What it saves is traffic: one pass over memory
reads the gradients as the convolutions left them, in bfloat16, updates weights and moments, and
writes the twins that the next step computes with, so that no step converts 21 million weights and
gradients on its own.

A run of parameters that always train together is a span: the backbone's convolutions, the rest of
the backbone, each head, each phase's part. A span without any gradient in a step is left alone, as
Adam does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dcdc.engine.optimiser import BETAS, EPS, Optimiser
from dcdc.networks import ClusteringNetwork, Convolution


@dataclass(frozen=True, eq=False)
class Span:
    """Parameters in one flat buffer; every tensor below has as many elements, in one order."""

    parameters: list[nn.Parameter]
    weight: Tensor
    first: Tensor
    second: Tensor
    """The moments."""
    gradient: Tensor
    step: Tensor
    twin: Tensor | None
    twins: list[Tensor]
    gradients: list[Tensor]
    """The parameters' own parts of the buffers."""


class FlatAdam(Optimiser):
    """For a ClusteringNetwork on one device; `lr` is a tensor there."""

    def __init__(self, network: ClusteringNetwork, lr: Tensor, half: bool = True) -> None:
        super().__init__(network.parameters(), lr)
        layers = [layer for layer in network.backbone.modules() if isinstance(layer, Convolution)]
        convolved = [weight for layer in layers for weight in layer.parameters()]
        taken = {id(weight) for weight in convolved}
        apart = (*network.heads.values(), *network.parts.values())
        heads = [list(part.parameters()) for part in apart]
        taken |= {id(weight) for head in heads for weight in head}
        rest = [weight for weight in network.parameters() if id(weight) not in taken]
        spans = [_span(convolved, twins=half), *(_span(some) for some in (rest, *heads))]
        self.spans = [span for span in spans if span is not None]
        if half and layers:
            for layer, twin, gradient in zip(
                layers, self.spans[0].twins, self.spans[0].gradients, strict=True
            ):
                layer.twin, layer.twin_gradient = twin, gradient
        for span in self.spans:
            for parameter, first, second in zip(
                span.parameters,
                _parts(span.first, span.parameters),
                _parts(span.second, span.parameters),
                strict=True,
            ):
                self.state[parameter] = {"step": span.step, "exp_avg": first, "exp_avg_sq": second}
        self._log_betas = torch.tensor(BETAS, device=lr.device).log()
        self.refresh()
        network.register_load_state_dict_post_hook(lambda *_: self.refresh())  # type: ignore[no-untyped-call]

    @property
    def flat_gradients(self) -> list[Tensor]:
        """What convolutions leave here instead of in `weight.grad`."""
        return [span.gradient for span in self.spans if span.twin is not None]

    def refresh(self) -> None:
        """After the weights were changed by others."""
        for span in self.spans:
            if span.twin is not None:
                span.twin.copy_(span.weight)

    @torch.no_grad()
    def step(self) -> None:
        assert isinstance(self.lr, Tensor)
        for span in self.spans:
            if span.twin is None:
                pairs = zip(span.gradients, span.parameters, strict=True)
                found = [(place, w.grad) for place, w in pairs if w.grad is not None]
                if not found:
                    continue
                if len(found) < len(span.parameters):  # a backbone may have weights of no use
                    span.gradient.zero_()
                torch._foreach_copy_([place for place, _ in found], [grad for _, grad in found])
            else:
                assert all(weight.grad is None for weight in span.parameters), "not on the stream"
            span.step.add_(1)
            # 1 - beta^n, which plain arithmetic would round off while n is small
            corrections = -torch.expm1(span.step * self._log_betas)
            update(span, self.lr, corrections)


def update(span: Span, rate: Tensor, corrections: Tensor) -> None:
    if span.weight.is_cuda:
        from dcdc.engine.flat_adam_kernel import launch

        launch(span, rate, corrections, BETAS, EPS)
    else:
        update_eagerly(span, rate, corrections)


def update_eagerly(span: Span, rate: Tensor, corrections: Tensor) -> None:
    gradient = span.gradient.float()
    span.first.lerp_(gradient, 1 - BETAS[0])
    span.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    length = (span.second / corrections[1]).sqrt_().add_(EPS)
    span.weight.sub_(span.first / length * (rate / corrections[0]))
    if span.twin is not None:
        span.twin.copy_(span.weight)


def _span(parameters: Sequence[nn.Parameter], twins: bool = False) -> Span | None:
    if not parameters:
        return None
    device = parameters[0].device
    n = sum(parameter.numel() for parameter in parameters)
    weight = torch.empty(n, device=device)
    for parameter, part in zip(parameters, _parts(weight, parameters), strict=True):
        part.copy_(parameter.detach())
        parameter.data = part
    kept = list(parameters)
    twin = torch.empty(n, dtype=torch.bfloat16, device=device) if twins else None
    gradient = torch.zeros(n, dtype=torch.bfloat16 if twins else torch.float32, device=device)
    return Span(
        parameters=kept,
        weight=weight,
        first=torch.zeros(n, device=device),
        second=torch.zeros(n, device=device),
        gradient=gradient,
        step=torch.zeros((), device=device),
        twin=twin,
        twins=[] if twin is None else list(_parts(twin, kept)),
        gradients=list(_parts(gradient, kept)),
    )


def _parts(flat: Tensor, parameters: Sequence[nn.Parameter]) -> Iterator[Tensor]:
    """Views laid out as each parameter is (channels last, say)."""
    start = 0
    for parameter in parameters:
        yield flat[start : start + parameter.numel()].as_strided(
            parameter.shape, parameter.stride(), flat.storage_offset() + start
        )
        start += parameter.numel()
