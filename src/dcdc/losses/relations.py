"""Losses over pairs of images that belong together or apart: DAC's, DDC's and DCCM's, and what
images learn that people corrected, of their labels and of such pairs.

Shapes: B images, K clusters, L places of a map, M pairs. Rows of assignments sum to 1; `earlier`
ones have no gradient: they are what the network answered before, and what is learnt from.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.heads import at_least_float32, sample_affinity

_MARGIN = 1e-4
"""How near to 0 and 1 a similarity counts: beyond, a wrong pair has no gradient instead of one that
drowns all others."""


class Relations(NamedTuple):
    """B x B each, an image with itself in neither."""

    together: Tensor
    apart: Tensor


def find_relations(earlier: Tensor, lower: Tensor | float, upper: Tensor | float) -> Relations:
    """Pairs whose cosine (of B x K) is at least `upper` belong together, those below `lower` apart;
    of others nothing is known."""
    similarity = sample_affinity(earlier, earlier)
    others = ~torch.eye(len(earlier), dtype=torch.bool, device=earlier.device)
    return Relations(together=(similarity >= upper) & others, apart=(similarity < lower) & others)


def even_threshold(earlier: Tensor, n_clusters: int) -> Tensor:
    """The cosine (of B x K) that as large a share of the pairs exceeds as has one cluster where
    `n_clusters` clusters are filled evenly."""
    n_images = len(earlier)
    rows, columns = torch.triu_indices(n_images, n_images, 1, device=earlier.device)
    values = sample_affinity(earlier, earlier)[rows, columns]
    size = n_images / n_clusters
    share = max(0.0, (size - 1) / (n_images - 1))
    n_together = max(1, round(share * len(values)))
    return values.topk(n_together).values[-1]


def relation_loss(assign: Tensor, relations: Relations) -> Tensor:
    """Binary cross-entropy of the cosines of B x K rows, the mean over pairs of which something is
    known; 0 where nothing is."""
    similarity = sample_affinity(assign, assign).clamp(_MARGIN, 1 - _MARGIN)
    together, apart = (at_least_float32(pairs) for pairs in relations)
    error = -(together * similarity.log() + apart * (1 - similarity).log())
    return error.sum() / (together + apart).sum().clamp_min(1)


def sure_label_loss(assign: Tensor, earlier: Tensor, threshold: float) -> Tensor:
    """Cross-entropy with the arg-max of the earlier row where its share is at least `threshold`,
    summed, per image of the batch."""
    share, label = earlier.max(dim=1)
    error = F.nll_loss(_log(assign), label, reduction="none")
    return (at_least_float32(share >= threshold) * error).mean()


def earlier_loss(assign: Tensor, earlier: Tensor) -> Tensor:
    """Cross-entropy with the earlier rows as they are, mean over images."""
    return -(earlier * _log(assign)).sum(1).mean()


def indicator_loss(assign: Tensor) -> Tensor:
    """1 less the squared length of a row, mean over images: 0 where each is one cluster's alone,
    the only rows whose sum and length are both 1."""
    return 1 - at_least_float32(assign).square().sum(1).mean()


def local_information_loss(scores: Tensor, together: Tensor) -> Tensor:
    """The bound of Jensen and Shannon on the mutual information of features and maps, with its sign
    turned (Hjelm et al., 2019).

    `scores` are B x B x L: of an image's features with each place of another's maps, a logit.
    Those of an image's own maps, and of the maps of images that belong together with it (B x B),
    should be high, those of all others low.
    """
    scores = at_least_float32(scores)
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    positive = at_least_float32(own | together)
    negative = 1 - positive
    high = (positive * F.softplus(-scores).mean(2)).sum() / positive.sum()
    low = (negative * F.softplus(scores).mean(2)).sum() / negative.sum().clamp_min(1)
    return high + low


def _log(assign: Tensor) -> Tensor:
    assign = at_least_float32(assign)
    return assign.clamp_min(torch.finfo(assign.dtype).tiny).log()


def label_loss(assign: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of B x K rows with B labels, a mean by B `weights`; 0 where these are."""
    rows, weights = at_least_float32(assign), at_least_float32(weights)
    share = rows.gather(1, labels[:, None])[:, 0].clamp_min(torch.finfo(rows.dtype).tiny)
    return -(weights * share.log()).sum() / weights.sum().clamp_min(1e-8)


def known_relations(rows: Tensor, unit: Tensor, apart: Tensor, n_images: int) -> Relations:
    """What is known of the pairs of a batch. `rows`: B, of the set. `unit`: B, the same number for
    images that belong together. `apart`: M, rising, `one * n_images + other` of either order."""
    others = rows[:, None] != rows  # a batch may hold an image twice
    together = (unit[:, None] == unit) & others
    keys = rows[:, None] * n_images + rows
    place = torch.searchsorted(apart, keys).clamp_max(len(apart) - 1)
    return Relations(together, (apart[place] == keys) & others)
