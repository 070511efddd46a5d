"""Self-labels: confident answers of the cluster head are labels for it to learn from.

The pseudo-label of an image's original copy, where its confidence passes a threshold, is the target
of its perturbed copy, as in SCAN (Van Gansbeke et al., 2020) and FixMatch (Sohn et al., 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from dcdc.config import RunConfig, Schedule
from dcdc.config.phase_settings import LEARNING_RATE, Copies
from dcdc.config.ranges import Range
from dcdc.config.rules import require
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.views import Copy, OriginalAndPerturbed
from dcdc.losses import self_label_loss
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork


@dataclass(frozen=True)
class SelfLabel(Phase):
    kind = "self_label"
    label = "self-labels"
    color = "#f08c00"

    learning_rate: Annotated[float, LEARNING_RATE] = 1e-4
    schedule: Schedule = "cosine"
    threshold: Annotated[float, Range(0, 1, below=True)] = 0.99
    """Confidence from which an answer counts as a label."""
    copies: Copies = "perturbed"
    """What learns the label: a perturbed copy, or a strong one, by some of RandAugment's operations
    and a hole, no crop."""

    def check(self, name: str, config: RunConfig) -> None:
        super().check(name, config)
        n_heads = config.network.sub_heads
        require(
            n_heads == 1 or not self.epochs,
            "network.sub_heads",
            n_heads,
            f"1 where {name}.epochs is above 0",
        )

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((CLUSTER_HEAD,),)

    def objective(self, context: TrainingContext, tools: StepTools) -> "SelfLabelObjective":
        strong = self.copies == "strong"
        taught = context.strong_copy(1) if strong else context.perturbed_copy(1)
        return SelfLabelObjective(context, taught, self.threshold, tools)


class SelfLabelObjective(OriginalAndPerturbed):
    def __init__(
        self, context: TrainingContext, taught: Copy, threshold: float, tools: StepTools
    ) -> None:
        super().__init__(context.model.original_copy, taught, applied=tools.applied)
        self.threshold, self.tools, self.sizes = threshold, tools, context.sizes

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        original, perturbed = copies
        # Each in its own: before 2.11 torch keeps the weights cast without a gradient for later.
        with torch.no_grad(), self.tools.autocast():
            assign = network(original).assign[CLUSTER_HEAD]
        with self.tools.autocast():
            assign_perturbed = network(perturbed).assign[CLUSTER_HEAD]
        assign, assign_perturbed = self.tools.gather(assign, assign_perturbed)
        loss, n_sure = self_label_loss(assign, assign_perturbed, self.threshold, self.sizes)
        return loss, {"self_label": loss, "sure": n_sure / len(assign)}
