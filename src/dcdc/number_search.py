"""How many clusters the images settle on, by features that are learnt once.

prepare_run(source, Overrides({"n_clusters": "auto"}), find_number=find_number)
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.config import RunConfig, to_mapping
from dcdc.data import Data, ImageSet, VectorSet, from_arrays
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.k_means import reduced_points, some_rows
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.prediction_strength import prediction_strengths
from dcdc.engine.trainer import Trainer
from dcdc.losses.sizes import EQUAL
from dcdc.metrics.cluster_number import choose_number
from dcdc.metrics.directions import directions
from dcdc.prepare.assembly import build_model, build_training, load_pretrained
from dcdc.prepare.cluster_number import FoundNumber, NumberRange
from dcdc.prepare.going_on import made_with, require_made_with, require_same_settings
from dcdc.prepare.resolve import has_stored_features, resolve
from dcdc.prepare.stored_features import stored_features
from dcdc.run import read_config
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads, pick_device
from dcdc.runtime.seeding import derive_seed

MOST_IMAGES, MOST_ON_GPU = 4_000, 30_000
"""That are looked at. On digits and pretrained features more change no answer and take longer. By
features of many images' own the peaks are clearer with more (docs/log.md)."""


def find_number(
    config: RunConfig,
    data: Data,
    wanted: NumberRange,
    observer: Observer | None = None,
    *,
    folder: RunFolder | None = None,
    resume: bool = False,
) -> FoundNumber:
    """`config` is resolved: of a run whose features are looked at, whatever its own number is.
    Where epochs are trained for them, `folder` keeps these, so that a search that was stopped can
    `resume`."""
    observer = observer or SilentObserver()
    lowest, highest = wanted.among(data.n_images)
    assert config.n_clusters is not None
    search = {"n_clusters": config.n_clusters, "lowest": lowest, "highest": highest}
    random = np.random.default_rng(derive_seed(config.train.seed, "number of clusters"))
    device = pick_device(config.train.device)
    most = MOST_ON_GPU if device.type == "cuda" else MOST_IMAGES
    rows = some_rows(data.n_images, most, random)
    keeping = None if folder is None else _Keeping(folder, search, resume)
    features, first = _features(config, data, rows, observer, keeping)
    with cpu_threads(config.train.threads):
        points, _ = reduced_points(directions(features), spherical=True)
        with observer.counting("comparing numbers of clusters") as progress:
            numbers = range(max(2, lowest - 1), highest + 2)
            even = config.sizes == EQUAL
            strengths = prediction_strengths(points, numbers, random, progress, device, even=even)
    return FoundNumber(choose_number(strengths, lowest), first)


def go_on(
    config: RunConfig, data: Data, folder: RunFolder, observer: Observer
) -> tuple[RunConfig, FoundNumber]:
    """With a search that was stopped, as `folder` has it, by the settings of its config, which
    `config` must have, too; and the config with the number that it found. The run then goes on with
    these settings, however large the number is."""
    search = folder.read_search()
    until_found = search["n_clusters"]
    looked_at = resolve(replace(config, n_clusters=until_found), data)
    stored = replace(read_config(folder), n_clusters=until_found)
    require_same_settings(folder.path, looked_at, stored)
    wanted = NumberRange(search["lowest"], search["highest"])
    found = find_number(looked_at, data, wanted, observer, folder=folder, resume=True)
    return replace(looked_at, n_clusters=found.number.number), found


class _Keeping(NamedTuple):
    """What is trained in the search."""

    folder: RunFolder
    search: dict[str, int]
    resume: bool

    def begin(self, trainer: Trainer, config: RunConfig, images: ImageSet) -> None:
        trainer.made_with = made_with(config, images)
        if not self.resume:
            self.folder.begin_search(to_mapping(replace(config, n_clusters=None)), self.search)
            return
        run = self.folder.path
        trainer.resume(lambda then: require_made_with(run, trainer.made_with, then))


def _features(
    config: RunConfig,
    data: Data,
    rows: NDArray[np.integer],
    observer: Observer,
    keeping: _Keeping | None,
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
        return _learnt_features(config, data, rows, observer, keeping)


def _learnt_features(
    config: RunConfig,
    images: ImageSet,
    rows: NDArray[np.integer],
    observer: Observer,
    keeping: _Keeping | None,
) -> tuple[NDArray[np.float32], FirstEpochs]:
    """After all epochs before the cluster head begins, with which the run goes on; and after one
    more, of a cluster head of any number, which draws clusters apart and is then forgotten."""
    kept_in = None if keeping is None else keeping.folder.search
    training = build_training(config, images, observer, kept_in)
    trainer = training.trainer
    trainer.evaluate = dict  # of a cluster head that has not begun
    if keeping is not None:
        keeping.begin(trainer, config, images)
    begins, phase = trainer.plan.cluster_head_begins()
    trainer.train(to=begins - 1)
    first = trainer.first_epochs()
    if phase.trains_backbone:
        trainer.folder = None
        trainer.train(to=begins)
    return training.model.features(_some(images, rows)), first


def _some(images: ImageSet, rows: NDArray[np.integer]) -> ImageSet:
    return from_arrays(np.asarray(images.images[rows]))
