"""How large clusters are to be, in losses that would otherwise make them equal.

A contrast over images is lowest where every cluster has as many. Here each image weighs what makes
up for the size of its cluster, so that any sizes are as good, or those that are given are best.

Shapes: B images, r perturbed copies of each, K clusters.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

Sizes = str | Sequence[float]
"""`equal`; `free`: whatever the images ask for; or the clusters' shares of the images, in any
order."""
EQUAL, FREE = "equal", "free"
FEWEST = 0.2
"""Of an even share, which a cluster counts as having at least: of fewer images no batch tells."""


def shares_of(assign: Tensor, sizes: Sizes) -> Tensor | None:
    """K, without a gradient: the shares that clusters are to have, by the assignments (B x K) of a
    batch; None where they are equal.

    Which cluster has which of given shares is told by how large they are now.
    """
    if sizes == EQUAL:
        return None
    mean = assign.detach().mean(dim=0)
    if sizes == FREE:
        return mean.clamp_min(FEWEST / assign.shape[1])
    assert not isinstance(sizes, str), sizes
    largest_first = sorted(sizes, reverse=True)
    # Filled on the device: a captured step copies nothing from the host.
    wanted = torch.stack([torch.full_like(mean[0], share) for share in largest_first])
    rank = mean.argsort(descending=True).argsort()
    return wanted[rank]


def image_weights(assign: Tensor, shares: Tensor) -> Tensor:
    """B, of mean 1, without a gradient: the smaller an image's cluster is to be, the more it
    weighs."""
    weights = (assign.detach() / shares).sum(dim=1)
    return weights / weights.mean()
