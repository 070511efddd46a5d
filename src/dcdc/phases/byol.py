"""Features by prediction: BYOL (Grill et al., Bootstrap your own latent, 2020).

From one of two perturbed copies of an image the network predicts what its EMA target makes of the
other. No other image is looked at, and no head trains. Shapes: B images, D numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from dcdc.augment import PerturbedCopy
from dcdc.config import Schedule
from dcdc.config.phase_settings import BATCH, PROJECTION
from dcdc.config.ranges import Range
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.views import PerturbedPair
from dcdc.losses import byol_loss
from dcdc.networks import ClusteringNetwork, CopyGroupNorm1d, copy_groups
from dcdc.networks.layers import EmaTarget


@dataclass(frozen=True)
class Byol(Phase):
    kind = "byol"
    label = "BYOL"
    color = "#4c6ef5"
    is_scored = False

    batch_size: Annotated[int | None, BATCH] = 512
    schedule: Schedule = "cosine"
    momentum: Annotated[float, Range(0, 1, below=True)] = 0.99
    """Of the EMA target: what a step leaves of it."""
    projection: Annotated[int, PROJECTION] = 128
    """Numbers that are predicted."""

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((self.kind,),)

    def part(self, network: ClusteringNetwork) -> "ByolPart":
        return ByolPart(network.backbone, network.n_features, self.projection)

    def begin(self, context: TrainingContext) -> None:
        """The backbone may have been changed since it was built, by the phase before or a start."""
        self.part_of(context.network).catch_up(context.network.backbone)

    def part_of(self, network: ClusteringNetwork) -> "ByolPart":
        part = network.parts[self.kind]
        assert isinstance(part, ByolPart)
        return part

    def objective(self, context: TrainingContext, tools: StepTools) -> "ByolObjective":
        return ByolObjective(context.perturbed_copy(2), self, tools)


class ByolPart(nn.Module):
    """Projection head, predictor, and the EMA target of backbone and projection."""

    def __init__(self, backbone: nn.Module, n_features: int, n_projected: int) -> None:
        super().__init__()
        self.projection = _two_layers(n_features, n_projected)
        self.predictor = _two_layers(n_projected, n_projected)
        self.target = EmaTarget(nn.Sequential(backbone, self.projection))

    def follow(self, backbone: nn.Module, momentum: float) -> None:
        self.target.follow(nn.Sequential(backbone, self.projection), momentum)

    def catch_up(self, backbone: nn.Module) -> None:
        self.target.catch_up(nn.Sequential(backbone, self.projection))


class ByolObjective(PerturbedPair):
    def __init__(self, perturbed_copy: PerturbedCopy, phase: Byol, tools: StepTools) -> None:
        super().__init__(perturbed_copy, applied=tools.applied)
        self.phase, self.tools = phase, tools

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        part = self.phase.part_of(network)
        part.follow(network.backbone, self.phase.momentum)  # what the step before has changed
        n = len(copies[0]) // 2
        with copy_groups(network, (n, n)):
            with self.tools.autocast():
                target = part.target(network.preprocess(copies[0]))
            with self.tools.autocast():
                predicted = part.predictor(part.projection(network.features(copies[0])))
        loss = byol_loss(*self.tools.gather(predicted, target))
        return loss, {self.phase.kind: loss}


def _two_layers(n_in: int, n_out: int) -> nn.Sequential:
    """With a norm and ReLU between them."""
    n_hidden = 2 * max(n_in, n_out)
    return nn.Sequential(
        nn.Linear(n_in, n_hidden), CopyGroupNorm1d(n_hidden), nn.Linear(n_hidden, n_out)
    )
