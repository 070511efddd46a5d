"""Does an export answer as its model does? Found out on random images before a file appears.

Shapes: N images, S pixels a side, C channels, K clusters, D features.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.networks import ClusteringNetwork

Answer = Callable[[np.ndarray], Mapping[str, np.ndarray]]
"""uint8 N x S x S x C, or float32 N x D, to the outputs by name."""

TOLERANCE = 1e-4
"""Of probabilities, and of features as a share of the largest one."""
BATCHES = (1, 16)
"""Images at a time: an export must take any number."""
_SEED = 0


@dataclass(frozen=True)
class Agreement:
    """Largest differences between a model and its export."""

    n_images: int
    probabilities: float
    features: float
    """As a share of the largest feature."""
    reassigned: int
    """Images in another cluster, though the model was sure beyond the tolerance."""

    @property
    def holds(self) -> bool:
        near = self.probabilities <= TOLERANCE and self.features <= TOLERANCE  # NaN is not
        return near and not self.reassigned


def require_agreement(model: TrainedModel, answer: Answer) -> Agreement:
    random = np.random.default_rng(_SEED)
    n, network = sum(BATCHES), model.network
    if model.takes_vectors:
        images = random_vectors(n, network, random)
    else:
        images = random_images(n, model.size, network.in_channels, random)
    found = compare(model, answer, images, BATCHES)
    if not found.holds:
        raise InputError(
            "the export does not answer as the model does, so it is not written: probabilities "
            f"differ by {found.probabilities:.1e}, features by {found.features:.1e} of the largest "
            f"(tolerance {TOLERANCE:.0e}), {found.reassigned} of {found.n_images} random images "
            "change their cluster; please report this"
        )
    return found


def compare(
    model: TrainedModel, answer: Answer, images: np.ndarray, batches: tuple[int, ...]
) -> Agreement:
    """The export sees the images in batches of these sizes, one after the other."""
    parts = np.split(images, np.cumsum(batches)[:-1])
    answers = [answer(part) for part in parts]
    exported = {name: np.concatenate([part[name] for part in answers]) for name in answers[0]}
    probabilities, features = model.predict_proba(images), model.transform(images)
    best_two = np.sort(probabilities, axis=1)[:, -2:]
    is_sure = best_two[:, 1] - best_two[:, 0] > 2 * TOLERANCE
    moved = exported["assignment"] != probabilities.argmax(axis=1)
    return Agreement(
        n_images=len(images),
        probabilities=float(np.abs(exported["probabilities"] - probabilities).max()),
        features=float(
            np.abs(exported["features"] - features).max() / max(np.abs(features).max(), 1e-12)
        ),
        reassigned=int((moved & is_sure).sum()),
    )


def random_vectors(n: int, network: ClusteringNetwork, random: np.random.Generator) -> np.ndarray:
    """Every way from the middle of the training set, near and far."""
    assert network.directions is not None
    middle = network.directions.middle.cpu().numpy()
    scale = max(float(np.abs(middle).mean()), 1e-3)
    far = np.geomspace(0.1, 10, n)[:, None]
    return (middle + scale * far * random.normal(size=(n, len(middle)))).astype(np.float32)


def random_images(n: int, size: int, channels: int, random: np.random.Generator) -> np.ndarray:
    """Smooth and noisy, dark and bright, in turn: pure noise looks all the same to a network."""
    coarse = random.integers(0, 256, (n, 3, 3, channels))
    grid = np.arange(size) * 3 // size
    smooth = coarse[:, grid][:, :, grid]
    noise = random.integers(0, 256, (n, size, size, channels))
    share = np.linspace(0, 1, n)[:, None, None, None]
    return ((1 - share) * smooth + share * noise).astype(np.uint8)
