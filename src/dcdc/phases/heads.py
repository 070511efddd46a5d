"""The heads: DCDC's two contrastive views over the assignments of each head.

The sample view and the class view (Dang et al., 2021) compare an image's original copy with its
perturbed ones, or with those of a near neighbour, as SCAN's clustering step does. The cluster head
may begin from K-Means on the features.

Shapes: B images, r perturbed copies of each, K clusters of a head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, Self

import torch
from torch import Tensor

from dcdc.config import RunConfig
from dcdc.config.phase_settings import BATCH, TEMPERATURE, Copies
from dcdc.config.ranges import Range
from dcdc.config.rules import require
from dcdc.data.vector_store import VectorStore
from dcdc.engine.cluster_head_initialisation import initialise_by_k_means
from dcdc.engine.context import TrainingContext
from dcdc.engine.neighbours import choose_partners
from dcdc.engine.objectives import Objective, StepTools, Terms, as_it_is
from dcdc.engine.partners import find_partners
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.views import Copy, OriginalAndPerturbed, VectorPairs
from dcdc.errors import InputError
from dcdc.losses import LOSSES, LossFunction
from dcdc.losses.sizes import EQUAL, Sizes
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD, ClusteringNetwork
from dcdc.phases.sub_head_losses import SubHeadLosses

NEIGHBOURS = "neighbours"


@dataclass(frozen=True)
class Heads(Phase):
    kind = "heads"
    label = "heads"
    color = "#2b8a3e"
    reads_vectors = True

    epochs: Annotated[int, Range(1)] = 200
    """An epoch shows every image once to every head."""
    batch_size: Annotated[int | None, BATCH] = 50
    n_repeats: Annotated[int, Range(1, most=1_000)] = 3
    """Perturbed copies of each image."""
    order: Literal["alternate", "joint"] = "alternate"
    """alternate: a pass for the over-clustering head, then one for the cluster head; joint: both
    heads in every step."""
    over_clustering_first: Annotated[float, Range(0)] = 0.0
    """Epochs in which the over-clustering head trains alone, to find features first; below 1:
    that share of the epochs."""
    initialisation: Literal["random", "k-means", "spherical-k-means"] = "random"
    """How the cluster head starts: as initialised, or from K-Means on the features so far;
    spherical: on their directions alone, for features of instance contrast."""
    neighbours: Annotated[int, Range(0)] = 0
    """The perturbed copies are of one of this many nearest neighbours, by the features with which
    the phase begins; 0: of the image itself. Of feature vectors, the neighbour itself takes
    their place."""
    copies: Copies = "perturbed"
    """strong: some of RandAugment's operations and a hole, no crop; then the original copies are
    strong ones, too."""
    loss: str = "dcdc"
    """A registered one: dcdc.losses.LOSSES. dcdc: the two views and balance, by the settings below;
    iic: mutual information, which has no settings; scan: how alike pairs are, and balance."""
    temperature: Annotated[float, TEMPERATURE] = 0.5
    sample_weight: Annotated[float, Range(0)] = 1.0
    class_weight: Annotated[float, Range(0)] = 1.0
    balance_weight: Annotated[float, Range(0)] = 0.0

    def check(self, name: str, config: RunConfig) -> None:
        super().check(name, config)
        takes_sizes = LOSSES.get(self.loss).sizes or config.sizes == EQUAL
        require(takes_sizes, "sizes", config.sizes, f"{EQUAL} with the loss {self.loss}")
        views = (self.sample_weight, self.class_weight)
        require(sum(views) > 0, f"{name}.*_weight", views, "above 0 for at least one view")
        alone, key = self.over_clustering_first, f"{name}.over_clustering_first"
        require(
            0 <= alone < self.epochs,
            key,
            alone,
            f"a share of the epochs, or fewer than all {self.epochs}",
        )
        has_head = config.network.over_clusters > 0
        require(alone == 0 or has_head, key, alone, "0 where network.over_clusters is 0")

    @property
    def epochs_alone(self) -> int:
        """Of the over-clustering head, in whole epochs."""
        alone = self.over_clustering_first
        if alone >= 1:
            return int(alone)
        return max(min(round(alone * self.epochs), self.epochs - 1), 0)

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:
        if number <= self.epochs_alone:
            return (heads[1:],)
        if self.order == "joint":
            return (heads,)
        return tuple((head,) for head in reversed(heads))

    def resolved(self) -> Self:
        return replace(self, over_clustering_first=float(self.epochs_alone))

    def check_images(self, name: str, n_images: int) -> None:
        if self.neighbours >= n_images:
            raise InputError(
                f"{n_images} images do not have {self.neighbours} neighbours each",
                remedy=f"lower {{{name}.neighbours}}",
            )

    def begin(self, context: TrainingContext) -> None:
        if self.neighbours:
            context.state[NEIGHBOURS] = find_partners(context, self.neighbours)

    def begin_epoch(self, context: TrainingContext, number: int) -> None:
        if number == self.epochs_alone + 1:
            self.initialise_cluster_head(context)

    def initialise_cluster_head(self, context: TrainingContext) -> None:
        if self.initialisation != "random":
            of_vectors = isinstance(context.store, VectorStore)
            initialise_by_k_means(
                context.model,
                context.store,
                context.seed,
                spherical=self.initialisation == "spherical-k-means",
                sizes=context.sizes,
                outliers=context.outliers,
                perturbed_copy=None if of_vectors else context.perturbed_copy,
            )

    def index_rows(self, *, of_vectors: bool = False) -> int:
        return 2 if self.neighbours or of_vectors else 1

    def batches(
        self, batches: Tensor, context: TrainingContext, generator: torch.Generator
    ) -> Tensor:
        neighbours, store = context.state.get(NEIGHBOURS), context.store
        if neighbours is None and not isinstance(store, VectorStore):
            return batches
        partners = batches
        if neighbours is not None:
            partners = choose_partners(batches, neighbours, generator)
        if isinstance(store, VectorStore) and store.has_copies:
            partners = partners + store.n_answered
        return torch.cat([batches, partners], dim=1)

    def end_epoch(self, context: TrainingContext, means: Mapping[str, float]) -> None:
        """Of several cluster heads, the one whose loss over the epoch was the lowest answers."""
        names = context.network.sub_heads(CLUSTER_HEAD)
        if len(names) > 1 and names[0] in means:  # they trained in this epoch
            context.network.answer_by(min(names, key=means.__getitem__))

    def objective(self, context: TrainingContext, tools: StepTools) -> Objective:
        if isinstance(context.store, VectorStore):
            return VectorHeadsObjective(*self.losses(context), tools)
        original: Copy = context.model.original_copy
        perturbed: Copy = context.perturbed_copy(self.n_repeats)
        if self.copies == "strong":
            original, perturbed = context.strong_copy(1), context.strong_copy(self.n_repeats)
        losses = self.losses(context)
        return HeadsObjective(original, perturbed, *losses, tools, partners=self.neighbours > 0)

    def without_neighbours(self) -> "Heads":
        """The same losses over copies of the image itself."""
        return replace(self, neighbours=0)

    def loss_function(self, sizes: Sizes = EQUAL) -> LossFunction:
        entry = LOSSES.get(self.loss)
        settings = {name: getattr(self, name) for name in entry.settings}
        return partial(entry.function, **settings, **({} if sizes == EQUAL else {"sizes": sizes}))

    def losses(self, context: TrainingContext) -> tuple[LossFunction, LossFunction]:
        """Of the cluster head, whose clusters may be of unequal sizes, and of the over-clustering
        head."""
        over = self.loss_function()
        return (over if context.sizes == EQUAL else self.loss_function(context.sizes)), over

    def remedies(self, name: str) -> str:
        return f"{super().remedies(name)} or a higher {{{name}.temperature}}"


def heads_of(config: RunConfig) -> Heads:
    """The first phase that trains the heads, or its defaults where no phase does."""
    return next((phase for phase in config.phases if isinstance(phase, Heads)), Heads())


class HeadsLoss:
    """A loss over each head's assignments of both copies: the two contrastive views, or another."""

    def __init__(self, loss: LossFunction, over: LossFunction, tools: StepTools) -> None:
        """`over`: that of the over-clustering head."""
        at_once = tools.compiled is as_it_is
        self._losses = SubHeadLosses(tools.compiled(loss), at_once=at_once)
        self._over = self._losses
        if over is not loss:
            self._over = SubHeadLosses(tools.compiled(over), at_once=at_once)
        self.tools = tools

    def loss(
        self, network: ClusteringNetwork, copies: tuple[Tensor, ...], heads: Sequence[str]
    ) -> tuple[Tensor, Terms]:
        original, perturbed = copies
        with self.tools.autocast():
            assign, assign_perturbed = self.tools.passes(network, original, perturbed, heads)
        totals, terms = [], Terms()
        for head in heads:
            names = network.sub_heads(head)
            pairs = [(assign[name], assign_perturbed[name]) for name in names]
            of_role = self._over if head.startswith(OVER_CLUSTERING_HEAD) else self._losses
            losses = of_role([self.tools.gather(*pair) for pair in pairs])
            totals.append(_mean([loss.total for loss in losses]))
            for term in losses[0].terms:
                terms[f"{head}/{term}"] = _mean([loss.terms[term] for loss in losses])
            if len(names) > 1:
                terms |= {name: loss.total for name, loss in zip(names, losses, strict=True)}
        return torch.stack(totals).sum(), terms


class HeadsObjective(OriginalAndPerturbed, HeadsLoss):
    """Of the copies of images."""

    def __init__(
        self,
        original_copy: Copy,
        perturbed_copy: Copy,
        loss: LossFunction,
        over: LossFunction,
        tools: StepTools,
        *,
        partners: bool = False,
    ) -> None:
        OriginalAndPerturbed.__init__(
            self, original_copy, perturbed_copy, partners=partners, applied=tools.applied
        )
        HeadsLoss.__init__(self, loss, over, tools)


class VectorHeadsObjective(VectorPairs, HeadsLoss):
    """Of feature vectors and their neighbours."""


def _mean(values: Sequence[Tensor]) -> Tensor:
    """Of a head's one loss, or of those of its sub-heads."""
    return values[0] if len(values) == 1 else torch.stack(list(values)).mean()
