"""Prediction: what one perturbed copy of an image says about the other, without other images.

Shapes: B images, D numbers of a projection.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import EMPTY, at_least_float32


def prediction_loss(predicted: Tensor, aim: Tensor) -> Tensor:
    """Squared distance of directions, 0 to 4: of each of the 2B copies' prediction (2B x D, first
    one copy of every image, then the other) and the other copy's aim, which has no gradient."""
    if predicted.shape != aim.shape or predicted.ndim != 2 or not len(aim) or len(aim) % 2:
        raise ValueError(
            f"predictions and aims need the same shape (two copies of each image x numbers), got "
            f"{tuple(predicted.shape)} and {tuple(aim.shape)}"
        )
    with torch.autocast(predicted.device.type, enabled=False):
        rows = F.normalize(at_least_float32(predicted), dim=1, eps=EMPTY)
        aims = F.normalize(at_least_float32(aim.detach()), dim=1, eps=EMPTY)
    others = aims.roll(len(aims) // 2, dims=0)
    return 2 - 2 * (rows * others).sum(1).mean()
