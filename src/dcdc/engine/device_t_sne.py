"""t-SNE on a GPU, for a report's map, with every pair of points; a tree of 5,000 takes 13 s of one
core. Perplexity, exaggeration, momentum and rate are those of scikit-learn.

Shapes: n points, D numbers of each.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_EXAGGERATION, _EXAGGERATED_STEPS = 12.0, 250
_HALVINGS = 64
_SMALLEST = 1e-12
_LEAST_GAIN = 0.01

Places = Callable[[NDArray[np.float32], NDArray[np.float32], float, int], NDArray[np.float32]]
"""n x 2 of points (n x D), a start (n x 2), a perplexity and a number of steps."""


def t_sne_on(device: torch.device) -> Places | None:
    """None where every pair of points would take longer than a tree: on a CPU."""
    if device.type != "cuda":
        return None

    def places(
        points: NDArray[np.float32], start: NDArray[np.float32], perplexity: float, n_steps: int
    ) -> NDArray[np.float32]:
        seen, begun = torch.from_numpy(points).to(device), torch.from_numpy(start).to(device)
        return np.asarray(t_sne(seen, begun, perplexity, n_steps).cpu().numpy())

    return places


@torch.no_grad()
def t_sne(points: Tensor, start: Tensor, perplexity: float, n_steps: int) -> Tensor:
    """n x 2 from n x D, from `start` on; the same points give the same places."""
    likeness = _likeness(points, perplexity)
    rate = max(len(points) / _EXAGGERATION / 4, 50.0)
    n_early = min(n_steps, _EXAGGERATED_STEPS)
    places = _descend(start.to(likeness), _EXAGGERATION * likeness, rate, 0.5, n_early)
    return _descend(places, likeness, rate, 0.8, n_steps - n_early)


def _descend(
    places: Tensor, likeness: Tensor, rate: float, momentum: float, n_steps: int
) -> Tensor:
    moved, gains = torch.zeros_like(places), torch.ones_like(places)
    for _ in range(n_steps):
        slope = _slope(places, likeness)
        gains = torch.where(slope * moved < 0, gains + 0.2, gains * 0.8).clamp_(min=_LEAST_GAIN)
        moved = momentum * moved - rate * gains * slope
        places = places + moved
    return places


def _likeness(points: Tensor, perplexity: float) -> Tensor:
    """n x n, in all 1: how likely two are neighbours, each with about `perplexity` of them."""
    distances = torch.cdist(points.double(), points.double()).square_()
    itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
    wanted = math.log(perplexity)
    low = torch.zeros(len(points), 1, dtype=torch.float64, device=points.device)
    high = torch.full_like(low, torch.inf)
    sharpness = torch.ones_like(low)
    for _ in range(_HALVINGS):
        given = _given(distances, itself, sharpness)
        entropy = -torch.xlogy(given, given).sum(dim=1, keepdim=True)
        is_flat = entropy > wanted
        low, high = torch.where(is_flat, sharpness, low), torch.where(is_flat, high, sharpness)
        sharpness = torch.where(high.isinf(), 2 * sharpness, (low + high) / 2)
    given = _given(distances, itself, sharpness)
    both = given + given.T
    return (both / both.sum()).clamp_(min=_SMALLEST).float()


def _given(distances: Tensor, itself: Tensor, sharpness: Tensor) -> Tensor:
    """n x n, rows in all 1: how likely a point has each other one for a neighbour."""
    return (-sharpness * distances).masked_fill(itself, -torch.inf).softmax(dim=1)


def _slope(places: Tensor, likeness: Tensor) -> Tensor:
    """n x 2: of the divergence of the places' likeness from the points'."""
    apart = places[:, None] - places[None]
    near = 1 / (1 + apart.square().sum(dim=2))
    near.fill_diagonal_(0)
    found = (near / near.sum()).clamp_(min=_SMALLEST)
    pull = (likeness - found) * near
    return 4 * (pull.sum(dim=1, keepdim=True) * places - pull @ places)
