"""Instance contrast: the two perturbed copies of an image against all others of the batch.

Shapes: B images, D numbers of a projection.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import EMPTY, at_least_float32


def instance_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Each of the 2B copies finds its twin among the 2B - 1 others (B x D each), by cosine."""
    if first.shape != second.shape or first.ndim != 2 or not len(first):
        raise ValueError(
            f"both copies need the same shape (images x numbers, an image at least), got "
            f"{tuple(first.shape)} and {tuple(second.shape)}"
        )
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    with torch.autocast(first.device.type, enabled=False):
        rows = F.normalize(at_least_float32(torch.cat([first, second])), dim=1, eps=EMPTY)
        logits = rows @ rows.T / temperature
    n = len(rows)
    itself = torch.eye(n, dtype=torch.bool, device=rows.device)
    twin = torch.arange(n, device=rows.device).roll(n // 2)
    return F.cross_entropy(logits.masked_fill(itself, -torch.inf), twin)
