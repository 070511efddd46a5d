"""How many clusters the images settle on, by features that are learnt once.

prepare_run(source, Overrides({"n_clusters": "auto"}), find_number=find_number)
"""

import numpy as np
from numpy.typing import NDArray

from dcdc.config import RunConfig
from dcdc.data import Data, ImageSet, VectorSet, from_arrays
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.k_means import reduced_points, some_rows
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.prediction_strength import prediction_strengths
from dcdc.metrics.cluster_number import choose_number
from dcdc.metrics.directions import directions
from dcdc.phases.frozen_heads import FrozenHeads
from dcdc.prepare.assembly import build_model, build_training, load_pretrained
from dcdc.prepare.cluster_number import FoundNumber, NumberRange
from dcdc.prepare.resolve import has_stored_features
from dcdc.prepare.stored_features import stored_features
from dcdc.runtime.device import cpu_threads
from dcdc.runtime.seeding import derive_seed

MOST_IMAGES = 4_000
"""That are looked at. More change no answer and take longer."""


def find_number(
    config: RunConfig, data: Data, wanted: NumberRange, observer: Observer | None = None
) -> FoundNumber:
    """`config` is resolved: of a run whose features are looked at, whatever its own number is."""
    observer = observer or SilentObserver()
    lowest, highest = wanted.among(data.n_images)
    random = np.random.default_rng(derive_seed(config.train.seed, "number of clusters"))
    rows = some_rows(data.n_images, MOST_IMAGES, random)
    features, first = _features(config, data, rows, observer)
    with cpu_threads(config.train.threads):
        points, _ = reduced_points(directions(features), spherical=True)
        with observer.counting("comparing numbers of clusters") as progress:
            numbers = range(max(2, lowest - 1), highest + 2)
            strengths = prediction_strengths(points, numbers, random, progress)
    return FoundNumber(choose_number(strengths, lowest), first)


def _features(
    config: RunConfig, data: Data, rows: NDArray[np.integer], observer: Observer
) -> tuple[NDArray[np.float32], FirstEpochs | None]:
    """Of those rows; and the epochs that were trained for them, where there are some."""
    if isinstance(data, VectorSet):
        return np.asarray(data.vectors[rows], np.float32), None
    with cpu_threads(config.train.threads):
        if has_stored_features(config.network):
            model = build_model(config)
            load_pretrained(config, model.network)
            with observer.counting("computing features") as progress:
                return np.asarray(stored_features(model, data, progress)[rows]), None
        observer.note("features are learnt first, to settle how many clusters there are")
        return _learnt_features(config, data, rows, observer)


def _learnt_features(
    config: RunConfig, images: ImageSet, rows: NDArray[np.integer], observer: Observer
) -> tuple[NDArray[np.float32], FirstEpochs]:
    """After all epochs before the cluster head begins, with which the run goes on; and after one
    more, of a cluster head of any number, which draws clusters apart and is then forgotten."""
    training = build_training(config, images, observer, None)
    trainer = training.trainer
    trainer.evaluate = dict  # of a cluster head that has not begun
    begins, phase = trainer.plan.cluster_head_begins()
    trainer.train(to=begins - 1)
    first = trainer.first_epochs()
    if not isinstance(phase, FrozenHeads):  # which leaves features as they are
        trainer.train(to=begins)
    return training.model.features(_some(images, rows)), first


def _some(images: ImageSet, rows: NDArray[np.integer]) -> ImageSet:
    return from_arrays(np.asarray(images.images[rows]))
