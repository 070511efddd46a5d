"""The cluster head of a run that learns from corrections: how it begins, and how sure it stays.

Shapes: N images, D features, K clusters.
"""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dcdc.data.store import Store
from dcdc.engine.edits import OUTSIDE
from dcdc.engine.linear_discriminant import LinearRule, corrected_head, factor_for
from dcdc.engine.settled import settled, spoken_of
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.networks import CLUSTER_HEAD

MOST_IMAGES = 20_000
"""That the rule is made of: more tell it no better."""
FEWEST_OF_CLUSTER = 20
"""Among these, where it has them."""
LEAST_SHARE = 0.06
_LOOKED_AT = 2_000
"""Images that tell how sure the answers are."""


@torch.no_grad()
def begin_head(
    model: TrainedModel, store: Store, taught: Taught, seed: int, label_share: float | None
) -> None:
    """The rule that tells the corrected clusters apart, as sure of its answers as the run was.
    `label_share`: what corrected images weigh together, as a share of all; None: as many images as
    the answers were unsure of."""
    corrected = spoken_of(taught)
    rows = _shown(taught, corrected, seed)
    rule = corrected_head(
        model.features_of(store, rows),
        taught.clusters[rows],
        taught.n_clusters,
        np.searchsorted(rows, corrected),
        partial(settled, rows=corrected, taught=taught),
        label_share=max(LEAST_SHARE, taught.doubt) if label_share is None else label_share,
        mean_confidence=1 - taught.doubt,
    )
    head = _cluster_head(model)
    head.weight.copy_(torch.from_numpy(rule.weight))
    head.bias.copy_(torch.from_numpy(rule.bias))


@torch.no_grad()
def keep_doubt(model: TrainedModel, store: Store, doubt: float) -> None:
    """The same answers, softened where they are surer than that on average."""
    rows = np.unique(np.linspace(0, store.n_answered - 1, _LOOKED_AT).astype(np.int64))
    head = _cluster_head(model)
    rule = LinearRule(*(part.double().cpu().numpy() for part in (head.weight, head.bias)))
    factor = factor_for(rule.scores(model.features_of(store, rows)), 1 - doubt)
    if factor < 1:
        head.weight.mul_(factor)
        head.bias.mul_(factor)


def _cluster_head(model: TrainedModel) -> nn.Linear:
    head = model.network.heads[CLUSTER_HEAD]
    assert isinstance(head, nn.Linear)
    return head


def _shown(taught: Taught, corrected: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Rising rows, all in some cluster: the corrected ones, some of every cluster, some others."""
    random = np.random.default_rng(seed)
    rows = random.permutation(np.flatnonzero(taught.clusters != OUTSIDE))
    if len(rows) <= MOST_IMAGES:
        return np.sort(rows)
    by_cluster = rows[np.argsort(taught.clusters[rows], kind="stable")]
    clusters = taught.clusters[by_cluster]
    rank = np.arange(len(clusters)) - np.searchsorted(clusters, clusters)  # within its cluster
    some = by_cluster[rank < FEWEST_OF_CLUSTER]
    return np.unique(np.concatenate([rows[:MOST_IMAGES], some, corrected]))
