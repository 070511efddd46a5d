"""Association: walks from some embeddings to others and back.

Haeusser, Mordvintsev and Cremers, Learning by association, 2017. Shapes: A embeddings from which
walks start, each of a class, B that are visited, D numbers of each.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from dcdc.losses.heads import at_least_float32

SMALLEST = 1e-8
"""Added to a share before its logarithm, which is then finite, and so is its gradient."""


class Association(NamedTuple):
    walker: Tensor
    """Cross-entropy of where a walk ends: in its own class, evenly over that."""
    visit: Tensor
    """Cross-entropy of which embeddings are visited: all, evenly."""


def association_loss(starts: Tensor, classes: Tensor, visited: Tensor) -> Association:
    """Of `starts` (A x D) of `classes` (A), over `visited` (B x D).

    A step goes to each embedding with the softmax of the dot products.
    """
    shapes = tuple(starts.shape), tuple(classes.shape), tuple(visited.shape)
    if starts.ndim != 2 or shapes[1] != shapes[0][:1] or shapes[0][1:] != shapes[2][1:]:
        raise ValueError(f"walks need embeddings of one length, a class each, got {shapes}")
    with torch.autocast(starts.device.type, enabled=False):
        near = at_least_float32(starts) @ at_least_float32(visited).T
        there, back = near.softmax(1), near.T.softmax(1)
        ends = there @ back  # A x A
    same = at_least_float32(classes[:, None] == classes)
    own_class = same / same.sum(1, keepdim=True)
    walker = -(own_class * (ends + SMALLEST).log()).sum(1).mean()
    visit = -(there.mean(0) + SMALLEST).log().mean()
    return Association(walker, visit)
