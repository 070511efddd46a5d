"""Cluster heads over features that stay as they are: the two views, with neighbours as copies.

DCDC's sample view and class view (Dang et al., 2021) compare each image's assignment with that of a
near neighbour, as SCAN's clustering step does. The backbone does not train, so its features are
computed once, and many heads train side by side in seconds. Half of them start from K-Means, half
from K-Means with clusters of equal size, without images that seem to belong to none, where such are
looked for; where clusters may be of unequal sizes, all start from joined groups. The one whose loss
is the lowest becomes the network's cluster head.

Shapes: N images, D features, H heads, B images of a batch, K clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from dcdc.config import Schedule
from dcdc.config.phase_settings import BATCH, LEARNING_RATE, TEMPERATURE
from dcdc.config.ranges import Range
from dcdc.engine.cluster_head_initialisation import (
    MOST_IMAGES,
    initialise_by_k_means,
    initialise_heads,
)
from dcdc.engine.context import TrainingContext
from dcdc.engine.k_means import balanced_centres, k_means_centres, some_rows
from dcdc.engine.neighbours import choose_partners, find_neighbours
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.outliers import ordinary_rows
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.views import Views
from dcdc.errors import InputError
from dcdc.losses import dcdc_loss
from dcdc.losses.sizes import EQUAL, Sizes
from dcdc.metrics.directions import directions, lengths_from
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork
from dcdc.phases.heads import NEIGHBOURS
from dcdc.phases.sub_head_losses import SubHeadLosses
from dcdc.runtime.seeding import derive_seed

SHARPNESS = 10.0
"""Logits of a head that begins are so many times the cosine with its centres."""
DIRECTIONS = "directions"


@dataclass(frozen=True)
class FrozenHeads(Phase):
    kind = "frozen_heads"
    label = "heads on frozen features"
    color = "#2b8a3e"
    trains_backbone = False

    epochs: Annotated[int, Range(0)] = 6
    batch_size: Annotated[int | None, BATCH] = 512
    learning_rate: Annotated[float, LEARNING_RATE] = 0.02
    schedule: Schedule = "cosine"
    temperature: Annotated[float, TEMPERATURE] = 0.5
    neighbours: Annotated[int, Range(1)] = 10
    """Each image is compared with one of this many nearest neighbours."""
    n_heads: Annotated[int, Range(1, most=1_000)] = 8
    """That train side by side; the one with the lowest loss answers."""

    def check_images(self, name: str, n_images: int) -> None:
        if self.neighbours >= n_images:
            raise InputError(
                f"{n_images} images do not have {self.neighbours} neighbours each",
                remedy=f"lower {{{name}.neighbours}}",
            )

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((CLUSTER_HEAD,),)

    def part(self, network: ClusteringNetwork) -> "FrozenHeadsPart":
        return FrozenHeadsPart(self.n_heads, _cluster_head(network))

    def part_of(self, network: ClusteringNetwork) -> "FrozenHeadsPart":
        part = network.parts[self.kind]
        assert isinstance(part, FrozenHeadsPart)
        return part

    def begin(self, context: TrainingContext) -> None:
        features = self._look(context)
        context.state[NEIGHBOURS] = find_neighbours(
            context.model, context.store, self.neighbours, features
        )
        part, processes = self.part_of(context.network), context.processes

        def by_first() -> None:
            if processes.is_first:
                part.start(features, context.seed, sizes=context.sizes, outliers=context.outliers)

        processes.with_barrier(by_first)
        processes.broadcast([*part.parameters(), *part.buffers()])

    def _look(self, context: TrainingContext) -> np.ndarray:
        """The features, N x D; their directions stay on the device."""
        store = context.store
        features = context.model.features_of(store, np.arange(store.n_answered))
        weight = self.part_of(context.network).weight
        context.made[DIRECTIONS] = (
            torch.from_numpy(directions(features)).to(weight)
            if weight.device.type == "cpu"
            else _directions_of(torch.from_numpy(features).to(weight))
        )
        return features

    def initialise_cluster_head(self, context: TrainingContext) -> None:
        initialise_by_k_means(
            context.model,
            context.store,
            context.seed,
            spherical=True,
            sizes=context.sizes,
            outliers=context.outliers,
        )

    def index_rows(self, *, of_vectors: bool = False) -> int:  # noqa: ARG002
        return 2

    def batches(self, batches: Tensor, context: TrainingContext, generator: Generator) -> Tensor:
        if DIRECTIONS not in context.made:  # the run was resumed
            self._look(context)
        partners = choose_partners(batches, context.state[NEIGHBOURS], generator)
        return torch.cat([batches, partners], dim=1)

    def objective(self, context: TrainingContext, tools: StepTools) -> "FrozenHeadsObjective":
        return FrozenHeadsObjective(context, self, tools)

    def end_epoch(self, context: TrainingContext, means: Mapping[str, float]) -> None:
        losses = [means[_term(number)] for number in range(self.n_heads)]
        best = min(range(self.n_heads), key=losses.__getitem__)
        self.part_of(context.network).move_into(_cluster_head(context.network), best)

    def remedies(self, name: str) -> str:
        return f"{super().remedies(name)} or a higher {{{name}.temperature}}"


def _directions_of(features: Tensor) -> Tensor:
    """As `directions`, on another device; `features` are used up."""
    features -= features.mean(dim=0)
    features /= features.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return features


class FrozenHeadsPart(nn.Module):
    """Heads that read directions: from the mean feature to each, at length 1."""

    def __init__(self, n_heads: int, head: nn.Linear) -> None:
        super().__init__()
        n_clusters, n_features = head.weight.shape
        self.weight = nn.Parameter(torch.zeros(n_heads, n_clusters, n_features))
        self.bias = nn.Parameter(torch.zeros(n_heads, n_clusters))
        self.middle: Tensor
        self.register_buffer("middle", torch.zeros(n_features))
        self.length: Tensor
        self.register_buffer("length", torch.ones(()))

    def forward(self, directions: Tensor) -> Tensor:
        """H x B x K: the assignments of each head, rows sum to 1."""
        logits = torch.einsum("bd,hkd->hbk", directions, self.weight) + self.bias[:, None]
        return F.softmax(logits, dim=2)

    @torch.no_grad()
    def start(
        self, features: np.ndarray, seed: int, *, sizes: Sizes = EQUAL, outliers: bool = False
    ) -> None:
        """From some of the features (N x D)."""
        middle = features.mean(axis=0)
        self.middle.copy_(torch.from_numpy(middle))
        self.length.fill_(float(lengths_from(middle, features).mean()))
        random = np.random.default_rng(derive_seed(seed, FrozenHeads.kind))
        some = features[some_rows(len(features), MOST_IMAGES, random)]
        points = directions(some)
        if sizes != EQUAL:
            self._start_by_joins(points, random, sizes)
            return
        if outliers:
            points = points[ordinary_rows(some, self.weight.shape[1], int(random.integers(2**31)))]
        self._start_by_k_means(points, random)

    def _start_by_k_means(self, points: np.ndarray, random: np.random.Generator) -> None:
        """Every second time with equal sizes."""
        n_heads, n_clusters, _ = self.weight.shape
        for number in range(n_heads):
            if number % 2 == 0:
                drawn = int(random.integers(2**31))
                centres = k_means_centres(points, n_clusters, drawn, 1, self.weight.device)
            else:
                centres = balanced_centres(points, centres, self.weight.device)
            start = F.normalize(torch.from_numpy(centres).float(), dim=1)
            self.weight[number].copy_(SHARPNESS * start)
        self.bias.zero_()

    def _start_by_joins(
        self, points: np.ndarray, random: np.random.Generator, sizes: Sizes
    ) -> None:
        n_heads, n_clusters, n_features = self.weight.shape
        # No weights are drawn for them: that would move torch's own random numbers.
        blank = partial(nn.Linear, n_features, n_clusters, device="meta")
        heads = [blank().to_empty(device="cpu") for _ in range(n_heads)]
        seeds = random.integers(2**31, size=n_heads).tolist()
        some = points.__getitem__
        initialise_heads(heads, len(points), some, seeds, sizes=sizes)
        for number, head in enumerate(heads):
            self.weight[number].copy_(head.weight)
            self.bias[number].copy_(head.bias)

    @torch.no_grad()
    def move_into(self, head: nn.Linear, number: int) -> None:
        """The head of that number, as one that reads features: they are as long as on average."""
        weight = self.weight[number] / self.length
        head.weight.copy_(weight)
        head.bias.copy_(self.bias[number] - weight @ self.middle)


class FrozenHeadsObjective(Views):
    """Of stored directions and those of neighbours: no image is looked at."""

    def __init__(self, context: TrainingContext, phase: FrozenHeads, tools: StepTools) -> None:
        self.context, self.phase, self.tools = context, phase, tools
        loss = partial(dcdc_loss, temperature=phase.temperature, sizes=context.sizes)
        # Not compiled: that would take longer than the phase.
        self._losses = SubHeadLosses(loss, at_once=True)
        self._rows: Tensor | None = None

    def see(self, indices: Tensor) -> None:
        self._rows = indices

    def draw(self, images: Tensor, generator: Generator) -> None:
        pass

    def part(self, draw: None, rows: slice) -> None:
        pass

    def copies(self, images: Tensor, draw: None) -> tuple[Tensor, ...]:  # noqa: ARG002
        return ()

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],  # noqa: ARG002
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        kept = self.context.made[DIRECTIONS]
        assert self._rows is not None
        seen, of_neighbours = self.phase.part_of(network)(kept[self._rows]).chunk(2, dim=1)
        pairs = zip(seen.unbind(), of_neighbours.unbind(), strict=True)
        losses = [loss.total for loss in self._losses([self.tools.gather(*pair) for pair in pairs])]
        lowest = torch.stack(losses).min()
        terms = {_term(number): loss for number, loss in enumerate(losses)}
        return torch.stack(losses).mean(), {self.phase.kind: lowest, **terms}


def _term(number: int) -> str:
    return f"{FrozenHeads.kind}/{number + 1}"


def _cluster_head(network: ClusteringNetwork) -> nn.Linear:
    head = network.heads[network.answering_head]
    assert isinstance(head, nn.Linear)
    return head
