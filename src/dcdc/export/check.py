"""Does an export answer as its model does? Found out on random images before a file appears.

Shapes: N images, H x W pixels, S pixels a side that the run has, C channels, K clusters, D
features.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dcdc.data.decode import square_images
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.networks import ClusteringNetwork

Answer = Callable[[np.ndarray], Mapping[str, np.ndarray]]
"""uint8 N x H x W x C, or float32 N x D, to the outputs by name."""

TOLERANCE = 1e-4
"""Of probabilities, and of features as a share of the largest one."""
RESIZED_TOLERANCE = 0.05
"""The same for images of other sizes, whose pixels the graph may leave a grey level or two off; or
what so much does to the model itself, where that is more."""
_LEVELS = 2
BATCHES, _RESIZED_BATCHES = (1, 16), (1, 2)
"""Images at a time: an export must take any number."""
_RESIZED = ((0.6, 1), (2.2, 3), (7, 6.5))
"""Height and width of others, by S: made larger, smaller, and so much smaller that blocks are
averaged first."""
_SEED = 0


@dataclass(frozen=True)
class Agreement:
    """Largest differences between a model and its export."""

    what: str
    """What both were given."""
    tolerance: float
    n_images: int
    probabilities: float
    features: float
    """As a share of the largest feature."""
    reassigned: int
    """Images in another cluster, though the model was sure beyond the tolerance."""

    @property
    def holds(self) -> bool:
        off = (self.probabilities, self.features)
        is_near = all(each <= self.tolerance for each in off)  # NaN is not
        return is_near and not self.reassigned


def require_agreement(model: TrainedModel, answer: Answer) -> list[Agreement]:
    """On what the model takes and, of one that takes images, on those of other sizes."""
    random = np.random.default_rng(_SEED)
    n, network = sum(BATCHES), model.network
    if model.takes_vectors:
        vectors = random_vectors(n, network, random)
        found = [compare(model, answer, vectors, BATCHES, "vectors")]
    else:
        images = random_images(n, model.size, network.in_channels, random)
        found = [compare(model, answer, images, BATCHES, "images of the run's size")]
        for across, down in _RESIZED:
            shape = (math.ceil(across * model.size), math.ceil(down * model.size))
            images = random_photos(sum(_RESIZED_BATCHES), shape, network.in_channels, random)
            what = f"images of {shape[0]} x {shape[1]}"
            tolerance = max(RESIZED_TOLERANCE, _change_by_levels(model, images, random))
            found.append(compare(model, answer, images, _RESIZED_BATCHES, what, tolerance))
    for each in found:
        _require(each)
    return found


def _require(found: Agreement) -> None:
    if not found.holds:
        raise InputError(
            "the export does not answer as the model does, so it is not written: of random "
            f"{found.what} probabilities differ by {found.probabilities:.1e}, features by "
            f"{found.features:.1e} of the largest (tolerance {found.tolerance:.0e}), "
            f"{found.reassigned} of {found.n_images} change their cluster; please report this"
        )


def compare(
    model: TrainedModel,
    answer: Answer,
    images: np.ndarray,
    batches: tuple[int, ...],
    what: str = "images",
    tolerance: float = TOLERANCE,
) -> Agreement:
    """The export sees the images in batches of these sizes, one after the other."""
    parts = np.split(images, np.cumsum(batches)[:-1])
    answers = [answer(part) for part in parts]
    exported = {name: np.concatenate([part[name] for part in answers]) for name in answers[0]}
    probabilities, features = model.predict_proba(images), model.transform(images)
    best_two = np.sort(probabilities, axis=1)[:, -2:]
    is_sure = best_two[:, 1] - best_two[:, 0] > 2 * tolerance
    moved = exported["assignment"] != probabilities.argmax(axis=1)
    return Agreement(
        what=what,
        tolerance=tolerance,
        n_images=len(images),
        probabilities=float(np.abs(exported["probabilities"] - probabilities).max()),
        features=float(
            np.abs(exported["features"] - features).max() / max(np.abs(features).max(), 1e-12)
        ),
        reassigned=int((moved & is_sure).sum()),
    )


def _change_by_levels(
    model: TrainedModel, photos: np.ndarray, random: np.random.Generator
) -> float:
    """How far the model's own answers move where each pixel is a grey level or two off."""
    images = square_images(photos, model.size)
    off = random.integers(-_LEVELS, _LEVELS + 1, images.shape)
    moved = (images + off).clip(0, 255).astype(np.uint8)

    def of_model(images: np.ndarray) -> Mapping[str, np.ndarray]:
        probabilities = model.predict_proba(images)
        return {
            "probabilities": probabilities,
            "features": model.transform(images),
            "assignment": probabilities.argmax(axis=1),
        }

    found = compare(model, lambda _: of_model(moved), images, (len(images),))
    return max(found.probabilities, found.features)


def random_vectors(n: int, network: ClusteringNetwork, random: np.random.Generator) -> np.ndarray:
    """Every way from the middle of the training set, near and far."""
    assert network.directions is not None
    middle = network.directions.middle.cpu().numpy()
    scale = max(float(np.abs(middle).mean()), 1e-3)
    far = np.geomspace(0.1, 10, n)[:, None]
    return (middle + scale * far * random.normal(size=(n, len(middle)))).astype(np.float32)


def random_photos(
    n: int, shape: tuple[int, int], channels: int, random: np.random.Generator
) -> np.ndarray:
    """N x H x W x C."""
    height, width = shape
    return random_images(n, max(shape), channels, random)[:, :height, :width]


def random_images(n: int, size: int, channels: int, random: np.random.Generator) -> np.ndarray:
    """Smooth and noisy, dark and bright, in turn: pure noise looks all the same to a network."""
    coarse = random.integers(0, 256, (n, 3, 3, channels))
    grid = np.arange(size) * 3 // size
    smooth = coarse[:, grid][:, :, grid]
    noise = random.integers(0, 256, (n, size, size, channels))
    share = np.linspace(0, 1, n)[:, None, None, None]
    return ((1 - share) * smooth + share * noise).astype(np.uint8)
