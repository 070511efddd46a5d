"""Representation first, then K-Means on it: what the autoencoders and other learnt baselines share.

Shapes: N images, D numbers of a code, K clusters.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn

from dcdc.data import ImageSet
from dcdc.data.store import Store, open_store
from dcdc.engine.device_k_means import device_k_means
from dcdc.engine.k_means import nearest_centre
from dcdc.engine.observer import Observer
from dcdc.engine.simple_training import (
    Batch,
    SimplePhase,
    Terms,
    adam_step,
    codes_of,
    epochs_for,
    from_store,
    train_simple,
)
from dcdc.errors import InputError
from dcdc.methods.context import Context
from dcdc.methods.points import principal_components
from dcdc.prepare.suggestions import TINY
from dcdc.runtime.device import choose_fastest_convolutions, cpu_threads, pick_device
from dcdc.runtime.seeding import derive_seed

Network = TypeVar("Network", bound=nn.Module)

_MOST_FEATURES = 2_048
"""Of which all directions are computed, to take the leading ones."""
_MORE_DIRECTIONS, _TURNS = 64, 12
"""Than are asked for, and how often they are turned: on a GPU a matter of milliseconds."""
_STARTS = 10


@dataclass(frozen=True)
class Budget:
    """What a training takes where its caller leaves it open."""

    n_steps: int
    width: int
    """Maps of the first layer."""
    learning_rate: float
    cosine_decay: bool
    """Of the learning rate, to 0 over the steps."""


SMALL = Budget(n_steps=500, width=16, learning_rate=3e-3, cosine_decay=False)
"""For tiny images and for a CPU; chosen on digits."""
LARGE = Budget(n_steps=10_000, width=64, learning_rate=1e-3, cosine_decay=True)
"""For a benchmark on a GPU: 43 epochs of 60,000 images in batches of 256, a minute or two."""


@dataclass(frozen=True)
class TrainingContext:
    """The images on their device, a seed and an observer: all that a short training needs."""

    image_set: ImageSet
    store: Store
    device: torch.device
    seed: int
    observer: Observer
    batch_size: int

    @classmethod
    def open(
        cls,
        image_set: ImageSet,
        seed: int,
        context: Context,
        batch_size: int | None = None,
    ) -> "TrainingContext":
        """A batch of more images than there are is all of them; `None` is chosen by the images."""
        if batch_size is None:
            batch_size = 256 if _is_photos(image_set) else 128
        if batch_size < 2:
            raise InputError(f"batch_size = {batch_size} must be at least 2")
        device = pick_device(context.device)
        choose_fastest_convolutions(device)
        store = open_store(image_set.images, device)
        batch_size = min(batch_size, image_set.n_images)
        return cls(image_set, store, device, seed, context.observer, batch_size)

    @property
    def of_photos(self) -> bool:
        return _is_photos(self.image_set)

    def code_size(self, asked: int | None) -> int:
        """Numbers of a code."""
        check_above_zero(n_code=asked)
        return asked or (64 if self.of_photos else 16)

    def build(self, network: Callable[[], Network]) -> Network:
        """With weights by the seed alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.seed, "weights"))
            built = network().to(self.device)
        if self.device.type == "cuda":
            built.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return built

    def budget(
        self,
        n_steps: int | None,
        width: int | None,
        learning_rate: float | None,
        small: Budget = SMALL,
    ) -> Budget:
        """As asked for; `None` is chosen by images and device: `small` for tiny ones and a CPU."""
        usual = small if self.image_set.side <= TINY or self.device.type == "cpu" else LARGE
        asked = {"n_steps": n_steps, "width": width, "learning_rate": learning_rate}
        given = {name: value for name, value in asked.items() if value is not None}
        check_above_zero(**given)
        return replace(usual, **given)  # type: ignore[arg-type]

    def phase(
        self,
        loss_of: Callable[[Batch], Terms],
        parameters: Iterable[nn.Parameter],
        budget: Budget,
        before_epoch: Callable[[int], None] = lambda _: None,
        *,
        may_be_captured: bool = False,
    ) -> SimplePhase:
        """By Adam, for about as many steps as the budget has."""
        epochs = self.epochs(budget.n_steps)
        n_steps = epochs * (self.image_set.n_images // self.batch_size)
        decay_steps = n_steps if budget.cosine_decay else None
        step = adam_step(loss_of, list(parameters), budget.learning_rate, decay_steps)
        return SimplePhase(step, epochs, before_epoch, may_be_captured)

    def epochs(self, n_steps: int) -> int:
        """For about as many steps."""
        return epochs_for(n_steps, self.image_set.n_images, self.batch_size)

    def train(self, *phases: SimplePhase) -> None:
        with self.threads():
            train_simple(
                phases,
                self.store.n_answered,
                from_store(self.store),
                batch_size=self.batch_size,
                seed=self.seed,
                device=self.device,
                observer=self.observer,
            )

    def codes(self, network: nn.Module, encode: Callable[[Tensor], Tensor]) -> NDArray[np.float32]:
        """N x D"""
        with self.threads():
            return codes_of(network, encode, self.store).cpu().numpy()

    def threads(self) -> AbstractContextManager[None]:
        """Small images are fastest, and give the same numbers everywhere, on one."""
        return cpu_threads(1 if self.image_set.side <= TINY else 0)


def check_above_zero(**asked: float | None) -> None:
    """Settings by their names; None was not asked for."""
    for name, value in asked.items():
        if value is not None and not value > 0:
            raise InputError(f"{name} = {value} must be above 0")


def whitened(codes: NDArray[np.float32], floor: float = 1 / 50) -> NDArray[np.float32]:
    """N x D: of about the same variance in every direction in which they vary noticeably.

    A decoder undoes any invertible map of its codes, so that scales and correlations mean little;
    below `floor` of the largest variance, though, there is mostly noise, which stays small.
    """
    centred = codes - codes.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(centred, rowvar=False, dtype=np.float64))
    return np.asarray(centred @ axes / np.sqrt(variances + variances[-1] * floor), np.float32)


def leading_directions(
    features: NDArray[np.float32], n: int = 64, device: torch.device | None = None
) -> NDArray[np.float32]:
    """N x n: every feature standardised, then the directions in which they vary most; `features`
    are used up. On a GPU, where `device` is one."""
    if device is not None and device.type == "cuda":
        return device_leading_directions(features, n, device)
    deviation = features.std(axis=0)
    kept = deviation > 1e-6 * deviation.max()
    standardised = features[:, kept]
    standardised -= standardised.mean(axis=0)  # in place: they may be gigabytes
    standardised /= deviation[kept]
    if min(standardised.shape) > _MOST_FEATURES:
        return principal_components(standardised, n, seed=0)
    # eigh sorts ascending: the last directions hold the most variance.
    axes = np.linalg.eigh(standardised.T @ standardised)[1][:, -n:]
    return np.asarray(standardised @ axes, np.float32)


@torch.no_grad()
def device_leading_directions(
    features: NDArray[np.float32], n: int, device: torch.device
) -> NDArray[np.float32]:
    """As `leading_directions`, by products on the device alone: a basis of a few directions more
    than `n`, turned towards those of most variance again and again (Halko et al., 2011)."""
    rows = torch.from_numpy(features).to(device)
    deviation = rows.std(dim=0, correction=0)
    kept = deviation > 1e-6 * deviation.max()
    rows = rows[:, kept]
    rows.sub_(rows.mean(dim=0)).div_(deviation[kept])
    n = min(n, *rows.shape)
    n_basis = min(n + _MORE_DIRECTIONS, *rows.shape)
    draws = torch.Generator(device=device).manual_seed(0)
    basis = torch.randn(rows.shape[1], n_basis, generator=draws, device=device)
    for _ in range(_TURNS):
        basis = torch.linalg.qr(rows.T @ (rows @ basis)).Q
    seen = rows @ basis
    # eigh sorts ascending: the last directions hold the most variance.
    axes = torch.linalg.eigh((seen.T @ seen).double())[1][:, -n:]
    found: NDArray[np.float32] = (seen @ axes.to(seen)).cpu().numpy()
    return found


def _is_photos(image_set: ImageSet) -> bool:
    """What is in colour and not tiny: objects anywhere, in any light."""
    return image_set.channels == 3 and image_set.side > TINY


def k_means(
    codes: NDArray[np.float32], n_clusters: int, seed: int, device: torch.device | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Assignments and centres (K x D): the best of 10 starts. On a GPU, where `device` is one."""
    drawn = derive_seed(seed, "k-means") % 2**32
    if device is not None and device.type == "cuda":
        centres = device_k_means(codes, n_clusters, drawn, _STARTS, device)
        return nearest_centre(codes, centres).astype(np.int64), centres
    found = KMeans(n_clusters, n_init=_STARTS, random_state=drawn)
    assignments = found.fit_predict(codes).astype(np.int64)
    return assignments, found.cluster_centers_.astype(np.float32)
