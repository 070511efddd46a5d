"""Corrections: what people said of some images is learnt, and images like them follow.

Before the first step the cluster head becomes the linear rule that tells the corrected clusters
apart (dcdc.engine.linear_discriminant): merged and new clusters have their rows by it, and it moves
as far as the corrections ask for. What it answers then is every image's label in the steps. A part
of every batch are images that people spoke of: they learn their labels once more, and that they
belong together or apart, as pairs of the sample view. Images that belong to no cluster teach
nothing.

Shapes: N images, B of a batch, K clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.config import RunConfig, Schedule
from dcdc.config.phase_settings import BATCH, LEARNING_RATE
from dcdc.config.ranges import SHARE, Range
from dcdc.config.rules import require
from dcdc.data.vector_store import VectorStore
from dcdc.engine.assignment import UNSAID
from dcdc.engine.context import TrainingContext
from dcdc.engine.corrected_head import begin_head, keep_doubt
from dcdc.engine.edits import OUTSIDE
from dcdc.engine.objectives import Objective, StepTools, Terms
from dcdc.engine.phase import Passes, Phase
from dcdc.engine.settled import said, spoken_of
from dcdc.engine.taught import Pairs, Taught, linked
from dcdc.engine.views import OriginalAndPerturbed, VectorRows
from dcdc.errors import InputError
from dcdc.losses import known_relations, label_loss, relation_loss
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork
from dcdc.runtime.seeding import derive_seed

LABELS, WEIGHTS, SPOKEN_OF, UNIT, APART = "labels", "weights", "spoken_of", "unit", "apart"
"""What the phase keeps: N labels and their weights, the rows that people spoke of, N numbers that
images share which belong together, and pairs that belong apart, as known_relations has them."""
_NO_PAIR = -1
_ONE_IN = 8
"""So many images of a batch, one is of those that people spoke of."""


@dataclass(frozen=True)
class Refine(Phase):
    kind = "refine"
    label = "corrections"
    color = "#e64980"
    reads_vectors = True

    batch_size: Annotated[int | None, BATCH] = 256
    learning_rate: Annotated[float, LEARNING_RATE] = 1e-3
    schedule: Schedule = "cosine"
    whole_network: bool = False
    """Whether the backbone learns, too; else its features are computed once, and the cluster head
    learns alone."""
    label_share: Annotated[float | None, SHARE] = None
    """What all corrected images weigh together where the cluster head begins, as a share of all
    images; None: as many as the run's answers were unsure of, .06 at least."""
    label_weight: Annotated[float, Range(0)] = 1.0
    """Of the cross-entropy of corrected images, beside that of all."""
    pair_weight: Annotated[float, Range(0)] = 1.0
    """Of pairs that belong together or apart."""

    def check(self, name: str, config: RunConfig) -> None:
        super().check(name, config)
        n_heads = config.network.sub_heads
        one = n_heads == 1 or not self.epochs
        require(one, "network.sub_heads", n_heads, f"1 where {name}.epochs is above 0")

    @property
    def on_features(self) -> bool:
        return not self.whole_network

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((CLUSTER_HEAD,),)

    def begin(self, context: TrainingContext) -> None:
        taught, model, store = _taught(context), context.model, context.store
        begin_head(model, store, taught, derive_seed(context.seed, "refine"), self.label_share)
        answers = model.assign_store(store).probabilities
        known = said(answers, taught)
        labels = np.where(known == UNSAID, answers.argmax(axis=1), known)
        n_following = int(((known == UNSAID) & (labels != taught.clusters)).sum())
        context.observer.note(f"{n_following:,} images follow those that were corrected")
        kept: dict[str, NDArray[np.generic]] = {
            LABELS: labels.clip(min=0).astype(np.int64),
            WEIGHTS: _weights(taught),
            SPOKEN_OF: _in_groups(taught),
            UNIT: linked(taught.together, len(labels)),
            APART: _keys(taught.apart, len(labels)),
        }
        context.state |= {name: torch.from_numpy(values) for name, values in kept.items()}

    def batches(
        self, batches: Tensor, context: TrainingContext, generator: torch.Generator
    ) -> Tensor:
        """The first images of every batch leave their places to some that people spoke of."""
        spoken, n_first = context.state[SPOKEN_OF], _n_first(batches.shape[1])
        if not len(spoken):
            return batches
        n_rows = len(batches) * n_first
        start = int(torch.randint(len(spoken), (1,), generator=generator))
        first = spoken.repeat(n_rows // len(spoken) + 2)[start : start + n_rows]
        return torch.cat([first.view(len(batches), n_first), batches[:, n_first:]], dim=1)

    def end_epoch(self, context: TrainingContext, means: Mapping[str, float]) -> None:  # noqa: ARG002
        """Labels make answers ever surer: they stay as sure as the run's were."""
        keep_doubt(context.model, context.store, _taught(context).doubt)

    def objective(self, context: TrainingContext, tools: StepTools) -> Objective:
        if context.processes.size > 1:
            raise InputError("corrections are learnt by one process: start it without torchrun")
        if isinstance(context.store, VectorStore):
            return VectorRefineObjective(context, self, tools)
        return ImageRefineObjective(context, self, tools)


def _taught(context: TrainingContext) -> Taught:
    if context.taught is None:
        raise InputError("the phase refine learns from corrections of a run: use dcdc refine RUN")
    return context.taught


def _weights(taught: Taught) -> NDArray[np.float32]:
    """N: 0 for images that belong to none, and for those that only pairs speak of."""
    weights: NDArray[np.float32] = (taught.clusters != OUTSIDE).astype(np.float32)
    paired = np.concatenate([taught.together, taught.apart]).ravel()
    weights[np.setdiff1d(paired, taught.labelled)] = 0
    return weights


def _in_groups(taught: Taught) -> NDArray[np.int64]:
    """Rows that people spoke of, those that pairs lead to one after the other."""
    rows = spoken_of(taught)
    group = linked(np.concatenate([taught.together, taught.apart]), len(taught.clusters))
    return rows[np.argsort(group[rows], kind="stable")]


def _keys(apart: Pairs, n_images: int) -> NDArray[np.int64]:
    both = np.concatenate([apart, apart[:, ::-1]])
    return np.sort(np.append(both[:, 0] * n_images + both[:, 1], _NO_PAIR))


def _n_first(batch_size: int) -> int:
    return max(2, batch_size // _ONE_IN)


class RefineLoss:
    def __init__(self, context: TrainingContext, phase: Refine, tools: StepTools) -> None:
        self.context, self.tools = context, tools
        self._weights = {
            "labels": 1.0,
            "corrected": phase.label_weight,
            "pairs": phase.pair_weight,
        }
        self._rows: Tensor | None = None

    def see(self, indices: Tensor) -> None:
        self._rows = indices

    def loss(
        self, network: ClusteringNetwork, copies: tuple[Tensor, ...], heads: Sequence[str]
    ) -> tuple[Tensor, Terms]:
        with self.tools.autocast():
            answers = [network(copy, heads).assign[CLUSTER_HEAD] for copy in copies]
        found = [self._terms(assign) for assign in answers]
        terms = {name: torch.stack([each[name] for each in found]).mean() for name in found[0]}
        return torch.stack([self._weights[name] * terms[name] for name in terms]).sum(), terms

    def _terms(self, assign: Tensor) -> Terms:
        rows, device = self._rows, assign.device
        assert rows is not None
        labels, weights = self._kept(LABELS, device)[rows], self._kept(WEIGHTS, device)[rows]
        terms = {"labels": label_loss(assign, labels, weights)}
        if len(self.context.state[SPOKEN_OF]):
            first = slice(_n_first(len(rows)))
            unit, apart = self._kept(UNIT, device), self._kept(APART, device)
            relations = known_relations(rows[first], unit[rows[first]], apart, len(unit))
            terms["corrected"] = label_loss(assign[first], labels[first], weights[first])
            terms["pairs"] = relation_loss(assign[first], relations)
        return terms

    def _kept(self, name: str, device: torch.device) -> Tensor:
        """In its one place there, where a captured step reads it."""
        state = self.context.state
        if state[name].device != device:
            state[name] = state[name].to(device)
        return state[name]


class VectorRefineObjective(RefineLoss, VectorRows):
    """Of feature vectors, or of features that are computed once."""


class ImageRefineObjective(RefineLoss, OriginalAndPerturbed):
    """Of an image's original copy and a perturbed one, which both learn its label."""

    def __init__(self, context: TrainingContext, phase: Refine, tools: StepTools) -> None:
        RefineLoss.__init__(self, context, phase, tools)
        OriginalAndPerturbed.__init__(
            self, context.model.original_copy, context.perturbed_copy(1), applied=tools.applied
        )
