"""What is written of a training that is done: a run folder, or the sample that its report needs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dcdc.config import (
    RunConfig,
    to_mapping,
)
from dcdc.data import Data
from dcdc.engine.history import append_history
from dcdc.engine.observer import SilentObserver
from dcdc.engine.sample import every_feature
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.networks.pretrained import keep_files
from dcdc.prepare.assembly import open_data
from dcdc.run.loading import load, read_config
from dcdc.run.results import answered, sample_of, write_results
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads


def write_run(
    folder: RunFolder,
    config: RunConfig,
    image_set: Data,
    model: TrainedModel,
    metrics: dict[str, Any],
    history: Sequence[dict[str, Any]],
    number: ClusterNumber | None = None,
    taught: Taught | None = None,
) -> None:
    """The run folder of a training that was done without one."""
    with folder.writing(), cpu_threads(config.train.threads):
        folder.begin(to_mapping(config), taught)
        keep_files(model.found_backbone or config.network.backbone, folder.backbone)
        if number is not None:
            folder.write_number(asdict(number))
        store = open_data(config, model, image_set, SilentObserver())
        for record in history:
            append_history(folder.history_file, record)
        assigned, vouch, _ = answered(config, model, store, taught)
        sample = sample_of(config, model, store, vouch)
        folder.write_features(every_feature(model, store))
        write_results(folder, image_set, model, assigned, sample, metrics)


def add_sample(folder: RunFolder, image_set: Data, device: str = "auto") -> None:
    """Writes what a report shows of `image_set`, the run's own images, by the run's model."""
    config = read_config(folder)
    with folder.writing(), cpu_threads(config.train.threads):
        model = load(folder.path, device)
        store = open_data(config, model, image_set, SilentObserver())
        sample = sample_of(config, model, store, answered(config, model, store).vouch)
        folder.write_sample(sample.arrays())
