"""Features by cluster discrimination: SeCu (Qian, Stable cluster discrimination, 2023).

Two perturbed copies of an image find the centre of its cluster, by their projections, in several
sets of centres: as many centres as clusters are asked for, twice as many, and so on. Labels are
found on the way, and a dual variable of each cluster keeps it from losing its images. No head
trains. Shapes: N images, B of a batch, S sets of at most K centres, D numbers of a projection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.config import RunConfig, Schedule
from dcdc.config.phase_settings import BATCH, TEMPERATURE
from dcdc.config.ranges import Range
from dcdc.config.rules import require
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.optimiser import Optimiser, Sgd, learning_rate_factor
from dcdc.engine.phase import Passes, Phase, Trained
from dcdc.engine.views import PerturbedPair
from dcdc.losses import balanced_labels, discrimination_loss, moved_centres, next_duals
from dcdc.losses.heads import EMPTY, at_least_float32
from dcdc.losses.sizes import EQUAL
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork, CopyGroupNorm1d

N_PROJECTED = 128
LABEL_WEIGHT = 0.2
"""Of the label in the target; the rest is what the other copy's softmax says."""
FEWEST = 0.9
"""Of an even share, which each cluster is to have of the images."""
FEWEST_OF_UNEQUAL = 0.1
"""The same where clusters need not be of equal size: none is to be lost."""
DUAL_RATE = 0.1
CENTRE_RATE = 0.12
LABELS = "labels"


@dataclass(frozen=True)
class Discriminate(Phase):
    kind = "discriminate"
    label = "cluster discrimination"
    color = "#4c6ef5"
    is_scored = False

    batch_size: Annotated[int | None, BATCH] = 256
    learning_rate: Annotated[float, Range(0, above=True)] = 0.4
    """Of SGD with momentum."""
    schedule: Schedule = "cosine"
    warmup_epochs: Annotated[float, Range(0)] = 10.0
    """In which the rate rises from 0; below 1: that share of the epochs."""
    weight_decay: Annotated[float, Range(0)] = 1e-4
    temperature: Annotated[float, TEMPERATURE] = 0.05
    n_sets: Annotated[int, Range(1, most=100)] = 10
    """Of centres: the first has as many as there are clusters, the second twice as many, ..."""

    def check(self, name: str, config: RunConfig) -> None:
        super().check(name, config)
        rising, epochs = self.warmup_epochs, self.epochs
        fits = rising < epochs or not epochs
        require(fits, f"{name}.warmup_epochs", rising, f"below the {epochs} epochs")

    def rate_factor(self, epoch: float) -> float:
        rising = self.warmup_epochs if self.warmup_epochs >= 1 else self.warmup_epochs * self.epochs
        if epoch < rising:
            return epoch / rising
        return learning_rate_factor(self.schedule, epoch - rising, self.epochs - rising)

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((self.kind,),)

    def part(self, network: ClusteringNetwork) -> "DiscriminatePart":
        head = network.heads[network.sub_heads(CLUSTER_HEAD)[0]]
        assert isinstance(head, nn.Linear)
        return DiscriminatePart(network.n_features, head.out_features, self.n_sets)

    def optimiser(self, trained: Trained) -> Optimiser:
        return trained.by(Sgd, weight_decay=self.weight_decay)

    def begin(self, context: TrainingContext) -> None:
        """No image has a label yet; -1 stands for that."""
        context.state[LABELS] = torch.full((len(context.store), self.n_sets), -1)

    def begin_epoch(self, context: TrainingContext, number: int) -> None:  # noqa: ARG002
        part = self.part_of(context.network)
        part.centres_before.copy_(part.centres)

    def part_of(self, network: ClusteringNetwork) -> "DiscriminatePart":
        part = network.parts[self.kind]
        assert isinstance(part, DiscriminatePart)
        return part

    def objective(self, context: TrainingContext, tools: StepTools) -> "DiscriminateObjective":
        return DiscriminateObjective(context, self, tools)

    def remedies(self, name: str) -> str:
        return f"{super().remedies(name)} or a higher {{{name}.temperature}}"


class DiscriminatePart(nn.Module):
    """Projection head, and the sets of centres with their duals: buffers, since no optimiser moves
    them."""

    def __init__(self, n_features: int, n_clusters: int, n_sets: int) -> None:
        super().__init__()
        self.projection = nn.Sequential(
            nn.Linear(n_features, n_features),
            CopyGroupNorm1d(n_features),
            nn.Linear(n_features, N_PROJECTED),
        )
        sizes = n_clusters * torch.arange(1, n_sets + 1)
        self.is_centre: Tensor
        self.register_buffer("is_centre", torch.arange(int(sizes[-1])) < sizes[:, None])
        self.centres: Tensor
        drawn = torch.randn(*self.is_centre.shape, N_PROJECTED)
        self.register_buffer("centres", F.normalize(drawn, dim=2))
        self.centres_before: Tensor
        """As they were when the epoch began: what the features are trained by."""
        self.register_buffer("centres_before", self.centres.clone())
        self.duals: Tensor
        self.register_buffer("duals", torch.zeros(self.is_centre.shape))

    @torch.no_grad()
    def learn(self, projected: Tensor, temperature: float, fewest: float) -> Tensor:
        """Labels, B x S, of the images whose copies are `projected` (2B x D, of unit length); duals
        and centres follow them. `fewest`: of an even share, which each cluster is to have."""
        cosines = torch.einsum("bd,skd->bsk", projected, self.centres)
        labels = balanced_labels(cosines, self.duals, self.is_centre)
        self.duals.copy_(next_duals(self.duals, labels, self.is_centre, fewest, DUAL_RATE))
        moved = moved_centres(
            self.centres, projected, labels, self.is_centre, temperature, CENTRE_RATE
        )
        self.centres.copy_(moved)
        return labels


class DiscriminateObjective(PerturbedPair):
    def __init__(self, context: TrainingContext, phase: Discriminate, tools: StepTools) -> None:
        super().__init__(context.perturbed_copy(2), applied=tools.applied)
        self.context, self.phase, self.tools = context, phase, tools
        self.fewest = FEWEST if context.sizes == EQUAL else FEWEST_OF_UNEQUAL
        self._rows: Tensor | None = None

    def see(self, indices: Tensor) -> None:
        self._rows = indices

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        part = self.phase.part_of(network)
        assert self._rows is not None
        with self.tools.autocast():
            projected = part.projection(network.features(copies[0]))
        (projected,) = self.tools.gather(projected)
        (rows,) = self.tools.gather(self._rows)
        with torch.autocast(projected.device.type, enabled=False):
            projected = F.normalize(at_least_float32(projected), dim=1, eps=EMPTY)
            labels = part.learn(projected.detach(), self.phase.temperature, self.fewest)
            cosines = torch.einsum("bd,skd->bsk", projected, part.centres_before)
            before = self._exchange_labels(rows, labels)
            loss = discrimination_loss(
                cosines, before, part.is_centre, self.phase.temperature, LABEL_WEIGHT
            )
        kept = (before == labels).float().mean()
        return loss, {self.phase.kind: loss, "same_label": kept}

    def _exchange_labels(self, rows: Tensor, labels: Tensor) -> Tensor:
        """What the images' labels were in the epoch before; these are kept for the next one. An
        image that had none has these."""
        state = self.context.state
        if state[LABELS].device != labels.device:  # new, or out of a checkpoint
            state[LABELS] = state[LABELS].to(labels.device)
        memory = state[LABELS]
        before = memory[rows]
        memory[rows] = labels
        return torch.where(before < 0, labels, before)
