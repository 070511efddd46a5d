"""Features by instance contrast: SimCLR (Chen et al., 2020) with its NT-Xent loss.

Two perturbed copies of an image find each other among all copies of the batch, by their
projections. No head trains. Shapes: B images, D numbers of a projection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from dcdc.augment import PerturbedCopy
from dcdc.config import Schedule
from dcdc.config.phase_settings import BATCH, PROJECTION, TEMPERATURE
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.views import PerturbedPair
from dcdc.losses import nt_xent_loss
from dcdc.networks import ClusteringNetwork
from dcdc.networks.layers import projection_head


@dataclass(frozen=True)
class Contrast(Phase):
    kind = "contrast"
    label = "instance contrast"
    color = "#4c6ef5"
    is_scored = False

    batch_size: Annotated[int | None, BATCH] = 512
    schedule: Schedule = "cosine"
    temperature: Annotated[float, TEMPERATURE] = 0.2
    projection: Annotated[int, PROJECTION] = 128
    """Numbers by which copies are compared."""

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((self.kind,),)

    def part(self, network: ClusteringNetwork) -> nn.Module:
        return projection_head(network.n_features, self.projection)

    def objective(self, context: TrainingContext, tools: StepTools) -> "ContrastObjective":
        return ContrastObjective(context.perturbed_copy(2), self, tools)

    def remedies(self, name: str) -> str:
        return f"{super().remedies(name)} or a higher {{{name}.temperature}}"


class ContrastObjective(PerturbedPair):
    def __init__(self, perturbed_copy: PerturbedCopy, phase: Contrast, tools: StepTools) -> None:
        super().__init__(perturbed_copy, applied=tools.applied)
        self.phase, self.tools = phase, tools

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        with self.tools.autocast():
            features = network.features(copies[0])
            (projected,) = self.tools.gather(network.parts[self.phase.kind](features))
        first, second = projected.chunk(2)
        loss = nt_xent_loss(first, second, self.phase.temperature)
        return loss, {self.phase.kind: loss}
