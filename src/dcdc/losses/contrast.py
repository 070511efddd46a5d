"""Cross-entropy of each row of an affinity matrix against its own index."""

import torch
from torch import Tensor
from torch.nn import functional as F


def contrast(affinity: Tensor, temperature: float) -> Tensor:
    """InfoNCE over the rows of a square affinity matrix; the diagonal holds the positives."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    own_index = torch.arange(len(affinity), device=affinity.device)
    return F.cross_entropy(affinity / temperature, own_index)
