"""run(config) -> result and run folder; the command line and the estimator both call it."""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import torch

from dcdc.config import NEUTRAL_KEYS, RunConfig, flat, to_mapping
from dcdc.data import Data, VectorSet
from dcdc.engine.assignment import Assigned
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.sample import every_feature
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import Interrupted
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.networks.pretrained import keep_files
from dcdc.prepare.assembly import build_training, open_data
from dcdc.prepare.going_on import made_with, require_made_with, require_same_settings
from dcdc.prepare.resolve import resolve
from dcdc.run.loading import read_config, training_features
from dcdc.run.results import (
    Baseline,
    answered,
    metrics_of,
    refinement_of,
    sample_of,
    scored_beside,
    write_results,
)
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads, describe_device
from dcdc.runtime.environment import own_commit, own_version
from dcdc.runtime.processes import ALONE, Processes
from dcdc.runtime.tensor_files import tensors_to_bytes

NO_BASELINES: Mapping[str, Baseline] = {}


@dataclass(frozen=True)
class RunResult:
    config: RunConfig
    """As resolved on the images."""
    model: TrainedModel
    assigned: Assigned
    metrics: dict[str, Any]
    history: list[dict[str, Any]]
    stopped_by: str | None = None
    """The signal that ended training early, with the model of the last finished epoch."""
    number: ClusterNumber | None = None
    """Where the images settled how many clusters there are."""


def run(
    config: RunConfig,
    image_set: Data,
    *,
    folder: RunFolder | None = None,
    resume: bool = False,
    observer: Observer | None = None,
    baselines: Mapping[str, Baseline] = NO_BASELINES,
    weights: Mapping[str, torch.Tensor] | None = None,
    keep_finished: bool = False,
    number: ClusterNumber | None = None,
    first: FirstEpochs | None = None,
    taught: Taught | None = None,
    processes: Processes = ALONE,
) -> RunResult:
    """Trains, answers and writes the run folder; without a folder nothing is written.

    Ctrl-C and SIGTERM save the state and raise Interrupted; with `keep_finished` the first ends
    training with the model of the last finished epoch, where there is one. `weights` is what the
    network begins with; `baselines` are scored beside, by their titles; `number` tells the report
    how it was found, and `first` are the epochs that were trained for it; `taught` is what people
    said of the images, for a run that learns from it (dcdc.refining). Of several `processes` all
    call this, and the first alone gives a folder.
    """
    with ExitStack() as held:
        if folder is not None:
            held.enter_context(folder.writing())
        held.enter_context(cpu_threads(config.train.threads))
        return _run(
            resolve(config, image_set, processes.size),
            image_set,
            folder,
            resume,
            observer or SilentObserver(),
            baselines,
            weights,
            keep_finished,
            number,
            first,
            taught,
            processes,
        )


def _run(
    config: RunConfig,
    image_set: Data,
    folder: RunFolder | None,
    resume: bool,
    observer: Observer,
    baselines: Mapping[str, Baseline],
    weights: Mapping[str, torch.Tensor] | None,
    keep_finished: bool,
    number: ClusterNumber | None,
    first: FirstEpochs | None,
    taught: Taught | None,
    processes: Processes,
) -> RunResult:
    if folder is not None and resume:
        require_same_settings(folder.path, config, read_config(folder))
    commit = own_commit()  # of the code that is loaded, whatever is checked out meanwhile
    path = folder.path if folder else None

    def begin() -> None:
        """In the folder, when nothing refuses the run any more."""
        if folder is not None:
            if resume:
                folder.write_config(to_mapping(config))
            else:
                folder.begin(to_mapping(config), taught)
            keep_files(config.network.backbone, folder.backbone)
            if number is not None:
                folder.write_number(asdict(number))
            if image_set.skipped:
                folder.write_skipped([(item.name, item.reason) for item in image_set.skipped])
            folder.end_search()

    try:
        training = build_training(config, image_set, observer, path, processes, weights, taught)
    except Interrupted:  # while features were computed, with which it goes on
        begin()
        raise
    if processes.joined:
        processes.require_same(_what_must_agree(config, image_set, training.model))
    stopped_by = None
    trainer = training.trainer
    trainer.made_with = processes.with_barrier(
        lambda: made_with(config, image_set) if folder is not None else {}
    )

    def accept(then: Mapping[str, Any]) -> None:
        assert folder is not None
        require_made_with(folder.path, trainer.made_with, then)

    can_resume = resume and (folder is not None or processes.joined)
    resumed = can_resume and trainer.resume(accept)
    has_searched = folder is not None and not folder.is_new and not resume
    if not has_searched:
        begin()
    if first is not None:
        trainer.take_up(first)
    if has_searched:
        begin()  # last: only then do the settings say that the number is known
    if folder is not None and (resumed or first is not None):
        done = [record for record in folder.read_history() if record["epoch"] <= trainer.epoch]
    else:
        done = trainer.history
    earlier = sum(record["seconds"] for record in done)
    started = time.perf_counter()
    try:
        trainer.train(keep_finished=keep_finished)
    except Interrupted as stopped:
        if stopped.signal != "SIGINT" or not trainer.return_to_finished_epoch():
            raise
        stopped_by = stopped.signal
    training.model.network.drop_parts()
    seconds = earlier + time.perf_counter() - started
    answers = None
    if stopped_by is None and trainer.evaluated == trainer.epoch:
        answers = training.evaluation.answers
    assigned, vouch, reference = answered(config, training.model, training.store, taught, answers)
    metrics = metrics_of(config, image_set, assigned) | {
        "epochs": trainer.epoch,
        "seed": config.train.seed,
        "phases": [
            {"name": name, "label": phase.label, "color": phase.color}
            for name, phase in config.active_phases.items()
        ],
        "training_seconds": round(seconds, 2),
        "device": describe_device(training.model.device),
        "torch": torch.__version__,
        "dcdc": own_version(),
        "commit": commit,
    }
    if processes.size > 1:
        metrics["processes"] = processes.size
    if taught is not None:
        metrics["refined"] = refinement_of(taught, assigned)
    history = folder.read_history() if folder else trainer.history
    training.model.metrics = metrics

    sample = features = None
    if processes.all_reduce_max(folder is not None):
        store = training.store
        if config.trains_heads_alone:  # whose perturbed copies are looked at, too
            store = open_data(config, training.model, image_set, observer)
        sample = sample_of(config, training.model, store, vouch)
        features = every_feature(training.model, training.store)

    def write() -> None:
        if processes.is_first:
            metrics["baselines"] = scored_beside(config, training.model, image_set, baselines)
        if folder is not None and sample is not None:
            folder.write_features(features)
            write_results(folder, image_set, training.model, assigned, sample, metrics)

    processes.with_barrier(write)
    if folder is not None:
        training.model.training_features = training_features(folder, training.model)
    elif reference is not None:
        training.model.training_features = lambda: reference
    return RunResult(config, training.model, assigned, metrics, history, stopped_by, number)


def _what_must_agree(config: RunConfig, image_set: Data, model: TrainedModel) -> dict[str, str]:
    rows = image_set.vectors if isinstance(image_set, VectorSet) else image_set.images
    ends = rows[[0, -1]].tobytes()
    names = "\0".join((image_set.names[0], image_set.names[-1]))
    settings = {key: value for key, value in flat(config).items() if key not in NEUTRAL_KEYS}
    return {
        "dcdc": own_version(),
        "torch": torch.__version__.split("+")[0],
        "images": f"{rows.shape}, {_digest(ends + names.encode())}",
        "settings": _digest(json.dumps(settings).encode()),
        "weights": _digest(tensors_to_bytes(model.network.state_dict())),
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
