"""A phase of a training: its settings, what it minimises, and what it needs before its first step.

The trainer knows epochs, steps, checkpoints, signals and processes, and no phase by name. A phase
is a frozen value; what it keeps while it trains (neighbours, say) are tensors in `context.state`,
or buffers of its own part of the network: both are in every checkpoint.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from dcdc.config import PhaseSettings
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import Objective, StepTools
from dcdc.engine.optimiser import Adam, Optimiser, learning_rate_factor
from dcdc.networks import ClusteringNetwork

Passes = tuple[tuple[str, ...], ...]
"""The heads that train in each pass over the images, in order."""


@dataclass(frozen=True)
class Trained:
    """What an optimiser of this training is made of."""

    parameters: list[nn.Parameter]
    lr: float | Tensor
    """A tensor where a captured step reads it."""
    slower: list[nn.Parameter]
    """Those whose rate is `factor` times the others'."""
    factor: float
    fused: bool

    def by(self, kind: Callable[..., Optimiser], **settings: Any) -> Optimiser:
        return kind(
            self.parameters,
            self.lr,
            slower=self.slower,
            factor=self.factor,
            fused=self.fused,
            **settings,
        )


@dataclass(frozen=True)
class Phase(PhaseSettings):
    @abstractmethod
    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:
        """In epoch `number` of the phase, counted from 1; `heads` are the network's, the cluster
        head first."""

    @abstractmethod
    def objective(self, context: TrainingContext, tools: StepTools) -> Objective:
        """What each of its steps minimises."""

    def part(self, network: ClusteringNetwork) -> nn.Module | None:  # noqa: ARG002
        """What it adds to the network while it trains, as `network.parts[kind]`."""
        return None

    def optimiser(self, trained: Trained) -> Optimiser:
        """What moves the weights in its steps."""
        return trained.by(Adam)

    def rate_factor(self, epoch: float) -> float:
        """The share of its learning rate at `epoch` (fractional, from 0) of the phase."""
        return learning_rate_factor(self.schedule, epoch, self.epochs)

    def begin(self, context: TrainingContext) -> None:
        """Before its first step. A resumed run does not come here again."""

    def begin_epoch(self, context: TrainingContext, number: int) -> None:
        """Before the first step of epoch `number` of the phase."""

    def initialise_cluster_head(self, context: TrainingContext) -> None:
        """Called too where training stops before the cluster head began, so that it can answer."""

    def index_rows(self, *, of_vectors: bool = False) -> int:  # noqa: ARG002
        """Rows of the store that a step reads for each image of its batch."""
        return 1

    def batches(
        self,
        batches: Tensor,
        context: TrainingContext,  # noqa: ARG002
        generator: torch.Generator,  # noqa: ARG002
    ) -> Tensor:
        """steps x B indices to steps x (rows x B): with the rows that its views need beside."""
        return batches

    def end_epoch(self, context: TrainingContext, means: Mapping[str, float]) -> None:
        """After an epoch with these mean terms."""

    def remedies(self, name: str) -> str:
        """What to try where its loss is not finite, with settings in braces."""
        return f"try a lower {{{name}.learning_rate}} (now {self.learning_rate})"

    def resolved(self) -> Self:
        """With what depends on other settings filled in."""
        return self

    def check_images(self, name: str, n_images: int) -> None:
        """Refuses settings that a set of this size does not allow."""


def trains(phase: Phase, head: str, number: int, heads: tuple[str, ...]) -> bool:
    """Whether `head` trains in epoch `number` of the phase."""
    return any(head in trained for trained in phase.passes(number, heads))
