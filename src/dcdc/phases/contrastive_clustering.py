"""Images and clusters, both by contrast: CC (Li et al., Contrastive clustering, 2021).

Two perturbed copies of an image find each other among all copies of the batch, by their
projections; and two copies of a cluster, its columns over the first and over the second copies of
all images, find each other among the columns of all clusters. Entropies keep clusters filled. The
cluster head alone trains, beside the projection. Shapes: B images, D numbers of a projection, K
clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor, nn

from dcdc.augment import PerturbedCopy
from dcdc.config import RunConfig
from dcdc.config.phase_settings import BATCH, LEARNING_RATE, PROJECTION, TEMPERATURE
from dcdc.config.ranges import Range
from dcdc.config.rules import require
from dcdc.engine.cluster_head_initialisation import initialise_by_k_means
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.views import PerturbedPair
from dcdc.losses import balance_loss, column_contrast_loss, nt_xent_loss
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork
from dcdc.networks.layers import projection_head


@dataclass(frozen=True)
class ContrastiveClustering(Phase):
    kind = "contrastive_clustering"
    label = "contrastive clustering"
    color = "#0c8599"

    batch_size: Annotated[int | None, BATCH] = 256
    learning_rate: Annotated[float, LEARNING_RATE] = 3e-4
    temperature: Annotated[float, TEMPERATURE] = 0.5
    """Of the contrast between images."""
    cluster_temperature: Annotated[float, TEMPERATURE] = 1.0
    """Of the contrast between clusters."""
    balance_weight: Annotated[float, Range(0)] = 1.0
    initialisation: Literal["random", "spherical-k-means"] = "random"
    """How the cluster head starts: as it is, or from K-Means on the directions of the features."""
    projection: Annotated[int, PROJECTION] = 128
    """Numbers by which copies of images are compared."""

    def check(self, name: str, config: RunConfig) -> None:
        super().check(name, config)
        n_heads = config.network.sub_heads
        one = n_heads == 1 or not self.epochs
        require(one, "network.sub_heads", n_heads, f"1 where {name}.epochs is above 0")

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((CLUSTER_HEAD,),)

    def part(self, network: ClusteringNetwork) -> nn.Module:
        return projection_head(network.n_features, self.projection)

    def begin_epoch(self, context: TrainingContext, number: int) -> None:
        if number == 1:
            self.initialise_cluster_head(context)

    def initialise_cluster_head(self, context: TrainingContext) -> None:
        if self.initialisation != "random":
            initialise_by_k_means(context.model, context.store, context.seed, spherical=True)

    def objective(self, context: TrainingContext, tools: StepTools) -> "CcObjective":
        return CcObjective(context.perturbed_copy(2), self, tools)

    def remedies(self, name: str) -> str:
        return f"{super().remedies(name)} or a higher {{{name}.temperature}}"


class CcObjective(PerturbedPair):
    def __init__(
        self, perturbed_copy: PerturbedCopy, phase: ContrastiveClustering, tools: StepTools
    ) -> None:
        super().__init__(perturbed_copy, applied=tools.applied)
        self.phase, self.tools = phase, tools

    def loss(
        self, network: ClusteringNetwork, copies: tuple[Tensor, ...], heads: Sequence[str]
    ) -> tuple[Tensor, Terms]:
        phase = self.phase
        with self.tools.autocast():
            output = network(copies[0], heads)
            projected = network.parts[phase.kind](output.features)
            (projected,) = self.tools.gather(projected)
            (assign,) = self.tools.gather(output.assign[CLUSTER_HEAD])
        first, second = assign.chunk(2)
        one, other = projected.chunk(2)
        terms = {
            "images": nt_xent_loss(one, other, phase.temperature),
            "clusters": column_contrast_loss(first, second, phase.cluster_temperature),
            "balance": balance_loss(first) + balance_loss(second),
        }
        total = terms["images"] + terms["clusters"] + phase.balance_weight * terms["balance"]
        return total, terms
