"""K-Means where the features are: on a GPU, all starts side by side.

Lloyd's iteration from k-means++ (Arthur and Vassilvitskii, 2007), as scikit-learn has them: greedy
seeding, the centre of an empty cluster moves to the farthest point, the start with the lowest
inertia wins. The same seed gives the same centres on the same device: sums are products with
one-hot labels, and points are drawn by an exponential race, since a GPU keeps the order neither of
sums by index nor of running sums.

Shapes: N points of D numbers, S starts, K clusters, L candidates for the next centre.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.engine.k_means import BALANCED_ROUNDS, SINKHORN_ROUNDS, SOFTNESS

MOST_ITERATIONS = 300
TOLERANCE = 1e-4
"""Of the points' variance: how far all centres may still move in an iteration."""
_BETWEEN_QUESTIONS = 5
"""Iterations until the host asks whether anything still moves: it waits for the device."""
_MOST_AT_ONCE = 2**27
"""Distances that are held at a time."""


@torch.no_grad()
def device_k_means(
    points: np.ndarray, n_clusters: int, seed: int, n_init: int, device: torch.device
) -> np.ndarray:
    """K x D: the centres of the best of `n_init` starts for `points` (N x D)."""
    middle = points.mean(axis=0, dtype=np.float64)
    # Far from 0, differences of squares would lose their digits.
    centred = torch.from_numpy((points - middle).astype(np.float32)).to(device)
    centres = _best_centres(centred, n_clusters, seed, n_init).cpu().numpy()
    return np.asarray(centres + middle, dtype=points.dtype)


@torch.no_grad()
def device_balanced_centres(
    points: np.ndarray, centres: np.ndarray, device: torch.device
) -> np.ndarray:
    """As `balanced_centres`."""
    seen = torch.from_numpy(points).to(device)
    found = F.normalize(torch.from_numpy(centres).to(seen), dim=1)
    for _ in range(BALANCED_ROUNDS):
        cosines = (seen @ found.T).double()
        near = torch.exp((cosines - cosines.amax(1, keepdim=True)) / SOFTNESS)
        of_image, of_cluster = near.new_ones(len(near)), near.new_ones(near.shape[1])
        for _ in range(SINKHORN_ROUNDS):
            of_cluster = 1 / (of_image @ near).clamp_min(1e-300)
            of_image = 1 / (near @ of_cluster).clamp_min(1e-300)
        shares = near * of_cluster * of_image[:, None]
        found = F.normalize(shares.to(seen.dtype).T @ seen, dim=1)
    return found.cpu().numpy()


def _best_centres(points: Tensor, n_clusters: int, seed: int, n_init: int) -> Tensor:
    generator = torch.Generator(device=points.device).manual_seed(seed)
    centres = _first_centres(points, n_clusters, n_init, generator)
    most_moved = TOLERANCE * float(points.var(0, correction=0).mean())
    for iteration in range(MOST_ITERATIONS):
        moved = _next_centres(points, centres)
        shift = (moved - centres).square().sum((1, 2)).max()
        centres = moved
        if iteration % _BETWEEN_QUESTIONS == 0 and float(shift) <= most_moved:
            break
    best = _inertia(points, centres).argmin()
    return centres[best]


def _first_centres(
    points: Tensor, n_clusters: int, n_init: int, generator: torch.Generator
) -> Tensor:
    """S x K x D by greedy k-means++: of L points, drawn by how far they are from the centres so
    far, the one that brings all points nearest."""
    n_candidates = 2 + int(math.log(n_clusters))
    chosen = torch.randint(len(points), (n_init,), generator=generator, device=points.device)
    centres = points[chosen][:, None]
    nearest = _squared_distances(points, centres)[..., 0]  # N x S
    for _ in range(1, n_clusters):
        candidates = points[_drawn(nearest, n_candidates, generator)]  # S x L x D
        reached = torch.minimum(_squared_distances(points, candidates), nearest[..., None])
        best = reached.sum(0, dtype=torch.float64).argmin(1)  # S
        start = torch.arange(n_init, device=points.device)
        nearest = reached[:, start, best]
        centres = torch.cat([centres, candidates[start, best][:, None]], dim=1)
    return centres


def _drawn(weights: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """S x n rows, drawn by their weights (N x S): of clocks with such rates, the first to ring."""
    clocks = [
        torch.empty_like(weights).exponential_(generator=generator) / weights.clamp_min(1e-30)
        for _ in range(n)
    ]
    return torch.stack([clock.argmin(0) for clock in clocks], dim=1)


def _next_centres(points: Tensor, centres: Tensor) -> Tensor:
    """S x K x D: the mean of each cluster; of empty ones, the points farthest from their centre."""
    n_starts, n_clusters, n_numbers = centres.shape
    sums = centres.new_zeros(n_starts * n_clusters, n_numbers, dtype=torch.float64)
    counts = centres.new_zeros(n_starts * n_clusters, dtype=torch.float64)
    farthest = centres.new_full((0, n_starts), 0.0)
    rows = centres.new_zeros((0, n_starts), dtype=torch.int64)
    for begin, some in _parts(points, n_starts * n_clusters):
        away, label = _squared_distances(some, centres).min(2)  # n x S
        member = F.one_hot(label, n_clusters).to(points.dtype).flatten(1)  # n x SK
        sums += member.T @ some
        counts += member.sum(0, dtype=torch.float64)
        farthest = torch.cat([farthest, away])
        rows = torch.cat(
            [
                rows,
                torch.arange(begin, begin + len(some), device=rows.device)[:, None].expand_as(away),
            ]
        )
        farthest, place = farthest.topk(min(n_clusters, len(farthest)), dim=0)
        rows = rows.gather(0, place)
    means = (sums / counts.clamp_min(1)[:, None]).to(points.dtype).view_as(centres)
    is_empty = (counts == 0).view(n_starts, n_clusters)
    turn = (is_empty.cumsum(1) - 1).clamp(0, len(rows) - 1)  # which of the farthest is whose
    return torch.where(is_empty[..., None], points[rows.T.gather(1, turn)], means)


def _inertia(points: Tensor, centres: Tensor) -> Tensor:
    """S: sum of squared distances to the nearest centre."""
    n_starts, n_clusters, _ = centres.shape
    parts = _parts(points, n_starts * n_clusters)
    sums = [
        _squared_distances(some, centres).amin(2).sum(0, dtype=torch.float64) for _, some in parts
    ]
    return torch.stack(sums).sum(0)


def _squared_distances(points: Tensor, centres: Tensor) -> Tensor:
    """n x S x K, of n points."""
    flat = centres.flatten(0, 1)
    squares = flat.square().sum(1) - 2 * (points @ flat.T) + points.square().sum(1, keepdim=True)
    return squares.clamp_min(0).view(len(points), *centres.shape[:2])


def _parts(points: Tensor, n_centres: int) -> Iterator[tuple[int, Tensor]]:
    """Rows whose distances to so many centres fit, and the number of the first."""
    n = max(1, _MOST_AT_ONCE // n_centres)
    return ((begin, points[begin : begin + n]) for begin in range(0, len(points), n))
