"""A phase of a training: its settings, what it minimises, and what it needs before its first step.

The trainer knows epochs, steps, checkpoints, signals and processes, and no phase by name. A phase
is a frozen value; what it keeps while it trains (neighbours, say) are tensors in `context.state`,
or buffers of its own part of the network: both are in every checkpoint.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from dcdc.config import PhaseSettings
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import Objective, StepTools

Passes = tuple[tuple[str, ...], ...]
"""The heads that train in each pass over the images, in order."""


@dataclass(frozen=True)
class Phase(PhaseSettings):
    @abstractmethod
    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:
        """In epoch `number` of the phase, counted from 1; `heads` are the network's, the cluster
        head first."""

    @abstractmethod
    def objective(self, context: TrainingContext, tools: StepTools) -> Objective:
        """What each of its steps minimises."""

    def part(self, backbone: nn.Module, n_features: int) -> nn.Module | None:  # noqa: ARG002
        """What it adds to the network while it trains, as `network.parts[kind]`."""
        return None

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
