"""The balance term of the authors' public code; the paper's text does not have it."""

import math

import torch
from torch import Tensor

from dcdc.losses.affinity import at_least_float32


def balance_loss(assign: Tensor) -> Tensor:
    """log K minus the entropy of the mean assignment: 0 when all clusters are filled evenly."""
    mean = at_least_float32(assign).mean(dim=0)
    # entr(p) = -p log p with value 0 at p = 0, but its gradient there is infinite.
    entropy: Tensor = torch.special.entr(mean.clamp_min(torch.finfo(mean.dtype).tiny)).sum()
    return math.log(assign.shape[1]) - entropy
