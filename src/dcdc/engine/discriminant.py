"""Discriminant directions: images differ along them more than their own perturbed copies do.

Fisher, The use of multiple measurements in taxonomic problems, 1936, with every image a class of
its own. Shapes: N images, F features.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.engine.copy_whitening import CopyScatter

FLOOR = 1e-4
"""Of the mean variance of copies: what varies less is taken to vary so much."""


class Discriminant(NamedTuple):
    means: Tensor
    """N x F: the images' mean copies."""
    middle: Tensor
    """F: their mean."""
    directions: Tensor
    """F x n, the most discriminant last."""

    def along(self) -> NDArray[np.float32]:
        """N x n: the mean copies along the directions."""
        found: NDArray[np.float32] = ((self.means - self.middle) @ self.directions).numpy()
        return found


def discriminant_directions(chunks: Iterable[Tensor], n: int, floor: float = FLOOR) -> Discriminant:
    """The n most discriminant, or as many as there are features, and less than there are images.

    A chunk: the features of each of r copies of some images, r x images x F. With a higher `floor`
    the variance of copies is trusted less.
    """
    scatter = CopyScatter()
    every = torch.cat([scatter.add(copies).cpu() for copies in chunks])
    middle = every.mean(dim=0)
    centred = every - middle
    variances, axes = torch.linalg.eigh(scatter.covariance())
    least = floor * variances.mean().clamp_min(torch.finfo(torch.float32).tiny)
    whitening = axes / (variances.clamp_min(0) + least).sqrt()
    between = (centred.T @ centred).double() / len(centred)
    _, most_discriminant = torch.linalg.eigh(whitening.T @ between @ whitening)
    n = min(n, len(axes), len(centred) - 1)
    return Discriminant(every, middle, (whitening @ most_discriminant[:, -n:]).to(every.dtype))
