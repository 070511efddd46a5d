"""What images learn that people corrected: their labels, and which of them belong together.

Shapes: B images, K clusters, M pairs.
"""

import torch
from torch import Tensor

from dcdc.losses.heads import at_least_float32
from dcdc.losses.relations import Relations


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
