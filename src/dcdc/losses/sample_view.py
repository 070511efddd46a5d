"""The sample view: rows of the assignment matrix (B images, r copies, K clusters)."""

import torch
from torch import Tensor

from dcdc.losses.affinity import sample_affinity
from dcdc.losses.contrast import contrast


def sample_view_loss(
    assign: Tensor,
    assign_perturbed: Tensor,
    temperature: float = 0.5,
    *,
    spare_siblings: bool = False,
) -> Tensor:
    """Each image finds its own perturbed copy among all rB of the batch.

    The paper's text compares an image with B perturbed ones, so with B-1 negatives. Its authors'
    code repeats the originals and compares with all rB, and so does this: the other r-1 copies of
    the same image count as negatives. `spare_siblings` leaves them out of the comparison.
    """
    affinity = sample_affinity(assign, assign_perturbed)
    if spare_siblings:
        affinity = affinity.masked_fill(_siblings(len(affinity), len(assign), affinity), -torch.inf)
    return contrast(affinity, temperature)


def _siblings(n_rows: int, n_images: int, like: Tensor) -> Tensor:
    image = torch.arange(n_rows, device=like.device) % n_images
    same_image = image[:, None] == image[None, :]
    return same_image.fill_diagonal_(False)
