"""What no step can be faster than: its convolutions alone, and its arithmetic at full rate."""

from collections.abc import Callable, Generator
from functools import partial

import torch

from baselines.convolutions import convolutions_of, forward_and_backward
from baselines.step_flops import step_flops
from dcdc.bench.steps import Case
from dcdc.bench.timing import CapturedCall, Measured, Timing, Trial, time_calls
from dcdc.runtime.device import choose_fastest_convolutions

CONVOLUTIONS = "convolutions of the backbone"
ARITHMETIC = "arithmetic at the matrix rate"
_CUDA_SIDE, _SIDE = 8192, 1024


def floor_trials(case: Case, device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    side = _CUDA_SIDE if device.type == "cuda" else _SIDE
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    product: list[Timing] = []

    def matrix_product() -> Measured:
        measured = _time_product(side, dtype, device, seconds)
        product.append(measured.timing)
        return measured

    def arithmetic() -> Measured:
        if not product:
            raise RuntimeError("the matrix rate was not measured")
        flops = step_flops(case)
        timing = product[0].scaled(flops / (2 * side**3))
        return Measured(timing, details={"flops": flops, "at_the_rate_of": _dtype_name(dtype)})

    yield Trial(f"product of {side} x {side}, {_dtype_name(dtype)}", matrix_product)
    yield Trial(ARITHMETIC, arithmetic)
    yield Trial(CONVOLUTIONS, partial(_time_convolutions, case, device, seconds))


def _time_product(side: int, dtype: torch.dtype, device: torch.device, seconds: float) -> Measured:
    left, right = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)
    timing = time_calls(lambda: torch.mm(left, right, out=out), device, seconds)
    flops = 2 * side**3
    rate = flops / timing.ms / 1e9
    return Measured(
        timing,
        details={
            "flops": flops,
            "teraflops_per_second": rate,
            "remarks": [f"{rate:,.2f} TFLOP/s"],
        },
    )


def _time_convolutions(case: Case, device: torch.device, seconds: float) -> Measured:
    half = case.config.train.precision == "bfloat16"
    dtype = torch.bfloat16 if half else torch.float32
    layers = convolutions_of(case)
    choose_fastest_convolutions(device)
    call: Callable[[], object] = forward_and_backward(layers, device, dtype)
    if device.type == "cuda":
        call = CapturedCall(call, device)
    timing = time_calls(call, device, seconds)
    return Measured(timing, details={"n_layers": len(layers), "dtype": _dtype_name(dtype)})


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
