"""What tests of several losses need: random assignments, and the cosine by hand."""

import math

import torch
from torch import Tensor


def random_pair(
    n_images: int, n_repeats: int, n_clusters: int, seed: int = 0, scale: float = 2.0
) -> tuple[Tensor, Tensor]:
    """Assignments of originals and of their perturbed copies."""
    generator = torch.Generator().manual_seed(seed)

    def draw(n_rows: int) -> Tensor:
        logits = torch.randn(n_rows, n_clusters, generator=generator, dtype=torch.float64)
        return torch.softmax(scale * logits, dim=1)

    return draw(n_images), draw(n_images * n_repeats)


def cosine(u: list[float], v: list[float]) -> float:
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    return dot / math.sqrt(sum(a * a for a in u)) / math.sqrt(sum(b * b for b in v))
