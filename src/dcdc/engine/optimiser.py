"""Adam and SGD with torch's own arithmetic, without what the first torch.optim.Optimizer brings
along, and the schedules of their learning rate.

torch's imports its compiler, whether or not anything is compiled: 1.5 s and 140 MB of every process
that trains, more than a short training on a laptop takes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

BETAS, EPS = (0.9, 0.999), 1e-8
MOMENTUM = 0.9


class Optimiser(ABC):
    """What steps, trainer and checkpoints know of one."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float | Tensor,
        *,
        fused: bool = False,
        slower: Iterable[nn.Parameter] = (),
        factor: float = 1.0,
    ) -> None:
        """`lr` is a tensor where a captured step reads it; `slower` are those of the parameters
        whose rate is `factor` times the others'."""
        self.parameters = list(parameters)
        self.lr = lr
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}
        """Of the parameters that have had a gradient."""
        self.fused = fused
        self.slower, self.factor = {id(parameter) for parameter in slower}, factor
        self._moved: set[int] = set()

    def zero_grad(self) -> None:
        self._moved.clear()
        for parameter in self.parameters:
            parameter.grad = None

    def named_state(self) -> dict[str, Tensor]:
        """By `number of the parameter/name`."""
        return {
            f"{number}/{name}": value
            for number, parameter in enumerate(self.parameters)
            for name, value in self.state.get(parameter, {}).items()
        }

    def load_named_state(self, named: Mapping[str, Tensor]) -> None:
        """A fused step reads weights and moments in one order of memory; files have another."""
        for key, value in named.items():
            number, _, name = key.partition("/")
            self._state_of(self.parameters[int(number)])[name].copy_(value)

    @torch.no_grad()
    def step(self) -> None:
        """Parameters without a gradient are left alone, and those that were moved before."""
        self._move_all(
            parameter
            for parameter in self.parameters
            if parameter.grad is not None and id(parameter) not in self._moved
        )
        self._moved.clear()

    @torch.no_grad()
    def step_early(self, parameters: list[nn.Parameter]) -> None:
        """Of some parameters, which have their gradients; `step` then moves the others."""
        self._move_all(parameters)
        self._moved.update(map(id, parameters))

    def _move_all(self, parameters: Iterable[nn.Parameter]) -> None:
        moving = list(parameters)
        slower = [parameter for parameter in moving if id(parameter) in self.slower]
        self._move([parameter for parameter in moving if id(parameter) not in self.slower], self.lr)
        if slower:
            self._move(slower, self.lr * self.factor)

    @abstractmethod
    def _move(self, moving: list[nn.Parameter], lr: float | Tensor) -> None:
        """One step of those, which have gradients."""

    @abstractmethod
    def _new_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Before its first step."""

    def _state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.state[parameter] = self._new_state(parameter)
        return self.state[parameter]


class Adam(Optimiser):
    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float | Tensor,
        betas: tuple[float, float] = BETAS,
        *,
        fused: bool = False,
        slower: Iterable[nn.Parameter] = (),
        factor: float = 1.0,
    ) -> None:
        super().__init__(parameters, lr, fused=fused, slower=slower, factor=factor)
        self.betas = betas

    def _move(self, moving: list[nn.Parameter], lr: float | Tensor) -> None:
        states = [self._state_of(parameter) for parameter in moving]
        adam(
            list(moving),
            gradients_of(moving),
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=self.fused or None,  # None: many tensors at once where the device has that
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=lr,
            weight_decay=0.0,
            eps=EPS,
            maximize=False,
        )

    def _new_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        return {
            "step": torch.zeros((), device=parameter.device if self.fused else "cpu"),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }


class Sgd(Optimiser):
    """With momentum; `weight_decay` pulls every weight towards 0."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float | Tensor,
        *,
        weight_decay: float = 0.0,
        fused: bool = False,
        slower: Iterable[nn.Parameter] = (),
        factor: float = 1.0,
    ) -> None:
        super().__init__(parameters, lr, fused=fused, slower=slower, factor=factor)
        self.weight_decay = weight_decay

    def _move(self, moving: list[nn.Parameter], lr: float | Tensor) -> None:
        sgd(
            list(moving),
            gradients_of(moving),
            [self._state_of(parameter)["momentum"] for parameter in moving],
            fused=self.fused or None,  # as Adam's
            weight_decay=self.weight_decay,
            momentum=MOMENTUM,
            lr=lr,  # type: ignore[arg-type]
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

    def _new_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        return {"momentum": torch.zeros_like(parameter)}


def gradients_of(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Of those that have one."""
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def learning_rate_factor(schedule: str, epoch: float, epochs: float) -> float:
    """The share of the base rate at `epoch` (fractional) of `epochs`: a pure function of how far
    training has come, so that a resume needs no state."""
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        progress = epoch / max(epochs, 1e-9)
        return 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    raise ValueError(f"unknown schedule {schedule!r}: constant or cosine")
