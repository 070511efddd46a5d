# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""One pass of Adam over a flat buffer, as a Triton kernel."""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 2048


@triton.jit
def _adam(
    weight,
    first,
    second,
    gradient,
    twin,
    rate,
    corrections,
    n,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    eps: tl.constexpr,
    has_twin: tl.constexpr,
    block: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < n
    g = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32)
    m = tl.load(first + at, mask=inside, other=0.0)
    v = tl.load(second + at, mask=inside, other=0.0)
    w = tl.load(weight + at, mask=inside, other=0.0)
    m += (g - m) * (1 - beta1)
    v = v * beta2 + g * g * (1 - beta2)
    length = tl.sqrt(v / tl.load(corrections + 1)) + eps
    w -= m / length * (tl.load(rate) / tl.load(corrections))
    tl.store(first + at, m, mask=inside)
    tl.store(second + at, v, mask=inside)
    tl.store(weight + at, w, mask=inside)
    if has_twin:
        tl.store(twin + at, w.to(tl.bfloat16), mask=inside)


def launch(
    span: Any, rate: Tensor, corrections: Tensor, betas: tuple[float, float], eps: float
) -> None:
    """`span` as in flat_adam; nothing comes from the host but its length."""
    n = span.weight.numel()
    _adam[(triton.cdiv(n, _BLOCK),)](
        span.weight,
        span.first,
        span.second,
        span.gradient,
        span.weight if span.twin is None else span.twin,
        rate,
        corrections,
        n,
        beta1=betas[0],
        beta2=betas[1],
        eps=eps,
        has_twin=span.twin is not None,
        block=_BLOCK,
        num_warps=8,
    )
