"""The two affinity matrices of the paper, M over samples and N over classes.

Shapes: B images, r perturbed copies of each, K clusters. `assign` is B x K, `assign_perturbed`
is rB x K with copy 1 of all B images first, then copy 2, and so on.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

# Below this length a row or column counts as empty: its cosine fades to zero instead of
# dividing by zero, and the gradient stays finite.
EMPTY = 1e-8


def paired_assignments(assign: Tensor, assign_perturbed: Tensor) -> tuple[Tensor, Tensor]:
    """Both as rB x K in float32 (float64 stays), the originals repeated so that rows pair up."""
    if assign.ndim != 2 or assign_perturbed.ndim != 2:
        raise ValueError(
            f"assignments must be matrices (images x clusters), got shapes {tuple(assign.shape)} "
            f"and {tuple(assign_perturbed.shape)}"
        )
    (n_images, n_clusters), (n_copies, n_clusters_perturbed) = assign.shape, assign_perturbed.shape
    if n_clusters != n_clusters_perturbed:
        raise ValueError(
            f"both copies need the same clusters, got {n_clusters} and {n_clusters_perturbed}"
        )
    if n_images == 0 or n_copies == 0 or n_copies % n_images:
        raise ValueError(
            f"assign_perturbed must hold a whole number of copies of every image, "
            f"got {n_copies} rows for {n_images} images"
        )
    repeated = assign.repeat(n_copies // n_images, 1)
    return at_least_float32(repeated), at_least_float32(assign_perturbed)


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision is lifted to float32; float64 stays, for proofs that need its digits."""
    return values if values.dtype == torch.float64 else values.float()


def sample_affinity(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """M, rB x rB: cosine of every original row with every perturbed row."""
    original, perturbed = paired_assignments(assign, assign_perturbed)
    return _cosine_of_rows(original, perturbed)


def class_affinity(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """N, K x K: cosine of every original column with every perturbed column."""
    original, perturbed = paired_assignments(assign, assign_perturbed)
    return _cosine_of_rows(original.T, perturbed.T)


def _cosine_of_rows(left: Tensor, right: Tensor) -> Tensor:
    # Autocast would quietly run this product in half precision.
    with torch.autocast(left.device.type, enabled=False):
        return F.normalize(left, dim=1, eps=EMPTY) @ F.normalize(right, dim=1, eps=EMPTY).T
