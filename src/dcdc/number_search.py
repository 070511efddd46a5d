"""How many clusters the images settle on, by features that are learnt once.

prepare_run(source, Overrides({"n_clusters": "auto"}), find_number=find_number)
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dcdc.config import PhaseSettings, RunConfig
from dcdc.data import Data, ImageSet, VectorSet, from_arrays
from dcdc.engine.k_means import reduced_points, some_rows
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.prediction_strength import prediction_strengths
from dcdc.metrics.cluster_number import ClusterNumber, choose_number
from dcdc.metrics.directions import directions
from dcdc.phases.frozen_heads import FrozenHeads
from dcdc.phases.heads import Heads
from dcdc.prepare.assembly import build_model, load_pretrained
from dcdc.prepare.cluster_number import NumberRange
from dcdc.prepare.resolve import has_stored_features
from dcdc.prepare.stored_features import stored_features
from dcdc.run import run
from dcdc.runtime.device import cpu_threads
from dcdc.runtime.seeding import derive_seed

MOST_IMAGES = 4_000
"""That are looked at. More change no answer and take longer."""
SHARE_ALONE, SHARE_BEFORE = 0.6, 0.4
"""Of the epochs of the over-clustering head alone, and of phases before the heads: as many as it
takes to tell clusters apart, so that all of it takes about half as long as the run."""


def find_number(
    config: RunConfig, data: Data, wanted: NumberRange, observer: Observer | None = None
) -> ClusterNumber:
    """`config` is resolved: of a run whose features are looked at, whatever its own number is."""
    observer = observer or SilentObserver()
    lowest, highest = wanted.among(data.n_images)
    random = np.random.default_rng(derive_seed(config.train.seed, "number of clusters"))
    rows = some_rows(data.n_images, MOST_IMAGES, random)
    features = _features(config, data, rows, observer)
    with cpu_threads(config.train.threads):
        points, _ = reduced_points(directions(features), spherical=True)
        with observer.counting("comparing numbers of clusters") as progress:
            numbers = range(max(2, lowest - 1), highest + 2)
            strengths = prediction_strengths(points, numbers, random, progress)
    return choose_number(strengths, lowest)


def feature_recipe(config: RunConfig) -> RunConfig:
    """As much of the recipe as it takes to learn features: some epochs of the phases before the
    heads or, where there are none, some of the over-clustering head alone and one of both."""
    is_heads = [isinstance(phase, Heads | FrozenHeads) for phase in config.phases]
    first = (*is_heads, True).index(True)
    before = [phase for phase in config.phases[:first] if phase.epochs]
    short = [replace(each, epochs=_some_epochs(each)) for each in before]
    for heads in config.phases[first : first + 1]:
        if isinstance(heads, Heads):
            alone = 0 if before else math.ceil(SHARE_ALONE * heads.epochs_alone)
            short.append(replace(heads, epochs=alone + 1, over_clustering_first=alone))
        else:
            short.append(replace(heads, epochs=1))
    train = replace(config.train, evaluate_every=sum(phase.epochs for phase in short))
    return replace(config, phases=tuple(short), train=train)


def _some_epochs(phase: PhaseSettings) -> int:
    rising = int(getattr(phase, "warmup_epochs", 0))
    return min(phase.epochs, max(math.ceil(SHARE_BEFORE * phase.epochs), rising + 1))


def _features(
    config: RunConfig, data: Data, rows: NDArray[np.integer], observer: Observer
) -> NDArray[np.float32]:
    """Of those rows."""
    if isinstance(data, VectorSet):
        return np.asarray(data.vectors[rows], np.float32)
    with cpu_threads(config.train.threads):
        if has_stored_features(config.network):
            model = build_model(config)
            load_pretrained(config, model.network)
            with observer.counting("computing features") as progress:
                return np.asarray(stored_features(model, data, progress)[rows])
        observer.note("features are learnt first, to settle how many clusters there are")
        model = run(feature_recipe(config), data, observer=observer).model
        return model.features(_some(data, rows))


def _some(images: ImageSet, rows: NDArray[np.integer]) -> ImageSet:
    return from_arrays(np.asarray(images.images[rows]))
