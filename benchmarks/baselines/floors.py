"""What no step can be faster than: its convolutions alone, and its arithmetic at full rate.

Both are read off the step itself: it runs once, eagerly, and its products are counted and noted.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from dcdc.bench.steps import Case, PhaseStep, phase_steps, step_name
from dcdc.bench.timing import CapturedCall, Measured, Timing, Trial, time_calls
from dcdc.engine.captured_step import CapturedStep
from dcdc.engine.observer import SilentObserver
from dcdc.engine.step import EagerStep
from dcdc.engine.trainer import Trainer
from dcdc.prepare.assembly import build_training
from dcdc.runtime.device import choose_fastest_convolutions

CONVOLUTIONS = "convolutions alone"
ARITHMETIC = "arithmetic at the matrix rate"
_CUDA_SIDE, _SIDE = 8192, 1024
_OF_CONVOLUTIONS = (torch.ops.aten.convolution, torch.ops.aten.convolution_backward)


def floor_trials(case: Case, device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    side = _CUDA_SIDE if device.type == "cuda" else _SIDE
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    product: list[Timing] = []

    def matrix_product() -> Measured:
        measured = _time_product(side, dtype, device, seconds)
        product.append(measured.timing)
        return measured

    def arithmetic(work: Callable[[], Work]) -> Measured:
        if not product:
            raise RuntimeError("the matrix rate was not measured")
        flops = work().flops
        timing = product[0].scaled(flops / (2 * side**3))
        return Measured(timing, details={"flops": flops, "at_the_rate_of": _dtype_name(dtype)})

    def convolutions(work: Callable[[], Work]) -> Measured:
        return _time_convolutions(work().convolutions, device, seconds)

    yield Trial(f"product of {side} x {side}, {_dtype_name(dtype)}", matrix_product)
    trainer = build_training(case.config, case.image_set, SilentObserver(), None).trainer
    for one in phase_steps(trainer):
        work = partial(work_of, case, one, trainer, device)
        yield Trial(floor_name(step_name(one), ARITHMETIC), partial(arithmetic, work))
        if one.phase.trains_backbone:
            yield Trial(floor_name(step_name(one), CONVOLUTIONS), partial(convolutions, work))


def floor_name(step: str, kind: str) -> str:
    return f"{step}: {kind}"


@dataclass(frozen=True)
class Call:
    """A convolution, or its gradients: an operator of torch's, and what it was given."""

    operator: Any
    arguments: tuple[Any, ...]
    """Tensors of the same shape, layout and precision stand for those that were there."""
    options: Mapping[str, Any]

    def __call__(self) -> object:
        return self.operator(*self.arguments, **self.options)


@dataclass(frozen=True)
class Work:
    flops: int
    """Of all products, both ways."""
    convolutions: list[Call]


def work_of(case: Case, one: PhaseStep, trainer: Trainer, device: torch.device) -> Work:
    """Of one step."""
    trainer.context.state.clear()
    trainer.context.made.clear()
    one.phase.begin(trainer.context)
    trainer.network.train()
    eager = one.step.eager if isinstance(one.step, CapturedStep) else one.step
    assert isinstance(eager, EagerStep)
    indices = torch.arange(one.n_rows, device=device) % case.image_set.n_images
    noted = _Convolutions()
    with FlopCounterMode(display=False) as counter, noted:
        eager(indices, one.heads)
    return Work(int(counter.get_total_flops()), noted.found)


class _Convolutions(TorchDispatchMode):
    """Notes those that run inside the block, in the backward pass too."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Call] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        del types
        if func.overloadpacket in _OF_CONVOLUTIONS:
            self.found.append(Call(func, tree_map(_stand_in, args), kwargs or {}))
        return func(*args, **(kwargs or {}))


def _stand_in(value: object) -> object:
    return torch.empty_like(value).normal_() if isinstance(value, Tensor) else value


def _time_convolutions(calls: list[Call], device: torch.device, seconds: float) -> Measured:
    choose_fastest_convolutions(device)

    def run() -> None:
        for call in calls:
            call()

    run_all: Callable[[], object] = CapturedCall(run, device) if device.type == "cuda" else run
    timing = time_calls(run_all, device, seconds)
    precision = calls[-1].arguments[0].dtype  # a gradient's; Sobel's edges come first, in float32
    return Measured(timing, details={"n_calls": len(calls), "dtype": _dtype_name(precision)})


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


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
