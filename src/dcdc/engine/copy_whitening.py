"""Directions of features on a scale on which an image's own perturbed copies differ equally in all.

Within-class covariance normalisation (Hatch, Kajarekar and Stolcke, 2006), with every image a class
of its own: what perturbation alone changes says nothing about clusters.

Shapes: n images, r perturbed copies of each, D features.
"""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.engine.k_means import unit_rows
from dcdc.runtime.library_threads import library_threads

SHRINKAGE = 0.1
"""How far the covariance is drawn to a ball: few copies do not tell it in every direction."""


class CopyScatter:
    """How the copies of images differ from the mean copies of these."""

    def __init__(self) -> None:
        self._sum = torch.zeros((), dtype=torch.float64)
        self._n_spare = 0

    def add(self, copies: Tensor) -> Tensor:
        """r x images x D; the mean copies, images x D."""
        mean = copies.mean(dim=0)
        away = (copies - mean).flatten(0, 1)
        self._sum = self._sum + (away.T @ away).double().cpu()
        self._n_spare += len(away) - len(mean)
        return mean

    def covariance(self) -> Tensor:
        """D x D float64"""
        return self._sum / max(self._n_spare, 1)


def copy_covariance(chunks: Iterable[Tensor]) -> NDArray[np.float64]:
    """D x D. A chunk: the features of some images' copies, r x images x D."""
    scatter = CopyScatter()
    for copies in chunks:
        scatter.add(copies)
    return np.asarray(scatter.covariance().numpy())


def whitened_directions(
    features: NDArray[np.floating], covariance: NDArray[np.float64]
) -> NDArray[np.float32]:
    """n x D, of length 1: from the mean feature to each image's, by the `covariance` of copies."""
    with library_threads():
        smallest = float(np.finfo(np.float32).tiny)
        ball = max(float(np.trace(covariance)) / len(covariance), smallest)
        shape = (1 - SHRINKAGE) * covariance + SHRINKAGE * ball * np.eye(len(covariance))
        variances, axes = np.linalg.eigh(shape)
        away = features - features.mean(axis=0, dtype=np.float64)
        return unit_rows(away @ (axes / np.sqrt(variances))).astype(np.float32)
