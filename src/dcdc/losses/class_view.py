"""The class view: columns of the assignment matrix (B images, r copies, K clusters)."""

from torch import Tensor

from dcdc.losses.affinity import class_affinity
from dcdc.losses.contrast import contrast


def class_view_loss(assign: Tensor, assign_perturbed: Tensor, temperature: float = 0.5) -> Tensor:
    """Each cluster's column over the originals finds its own column over the perturbed copies."""
    return contrast(class_affinity(assign, assign_perturbed), temperature)
