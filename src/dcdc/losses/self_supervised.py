"""Losses of features without heads: by contrast (SimCLR), and by prediction (BYOL).

Shapes: B images, D numbers of a projection.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import EMPTY, at_least_float32


def nt_xent_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent of SimCLR (Chen et al., 2020): each of the 2B copies (two of B x D) finds the other
    one of its image among all copies of the batch, by cosine."""
    if first.shape != second.shape or first.ndim != 2 or not len(first):
        raise ValueError(
            f"two copies need the same shape (images x numbers, an image at least), got "
            f"{tuple(first.shape)} and {tuple(second.shape)}"
        )
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    with torch.autocast(first.device.type, enabled=False):
        rows = F.normalize(at_least_float32(torch.cat([first, second])), dim=1, eps=EMPTY)
        logits = rows @ rows.T / temperature
    place = torch.arange(len(rows), device=rows.device)
    itself = place[:, None] == place
    other_copy = (place + len(first)) % len(rows)
    return F.cross_entropy(logits.masked_fill(itself, -torch.inf), other_copy)


def byol_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """BYOL (Grill et al., 2020): squared distance of directions, 0 to 4, of each of the 2B copies'
    prediction (2B x D, first one copy of every image, then the other) and the other copy's target,
    which has no gradient."""
    if predicted.shape != target.shape or predicted.ndim != 2 or not len(target) or len(target) % 2:
        raise ValueError(
            f"predictions and targets need the same shape (two copies of each image x numbers), "
            f"got {tuple(predicted.shape)} and {tuple(target.shape)}"
        )
    with torch.autocast(predicted.device.type, enabled=False):
        rows = F.normalize(at_least_float32(predicted), dim=1, eps=EMPTY)
        targets = F.normalize(at_least_float32(target.detach()), dim=1, eps=EMPTY)
    others = targets.roll(len(targets) // 2, dims=0)
    return 2 - 2 * (rows * others).sum(1).mean()
