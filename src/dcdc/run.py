"""run(config) -> result and run folder; the command line and the estimator both call it."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dcdc.config import (
    NEUTRAL_KEYS,
    RunConfig,
    flat,
    from_mapping,
    to_mapping,
    with_values,
)
from dcdc.data import Data, ImageSet, VectorSet
from dcdc.data.store import Store
from dcdc.engine.assignment import Assigned
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.history import append_history
from dcdc.engine.model_card import model_card
from dcdc.engine.model_files import MODEL_FILES, weights_note
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.outliers import find_outliers
from dcdc.engine.sample import Sample, every_feature, take_sample
from dcdc.engine.settled import said
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError, Interrupted
from dcdc.metrics import partition_health, score
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.metrics.health import OUTLIER
from dcdc.metrics.hierarchy import Hierarchy, join_clusters
from dcdc.networks import find_backbone
from dcdc.networks.feature_vectors import VECTORS
from dcdc.networks.pretrained import keep_files, spec_of_kept
from dcdc.prepare.assembly import build_model, build_training, open_data
from dcdc.prepare.frozen_features import with_vectors
from dcdc.prepare.going_on import made_with, require_made_with, require_same_settings
from dcdc.prepare.resolve import has_stored_features, perturbed_copy, resolve
from dcdc.prepare.stored_features import stored_features
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads, describe_device
from dcdc.runtime.environment import own_commit, own_version
from dcdc.runtime.hub import fetch_folder
from dcdc.runtime.processes import ALONE, Processes
from dcdc.runtime.tensor_files import tensors_to_bytes

Baseline = Callable[[Data, int, int], np.ndarray]
"""Images, clusters and a seed in, N assignments out."""
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
    assigned, vouch, reference = _answered(config, training.model, training.store, taught, answers)
    metrics = _metrics(config, image_set, assigned) | {
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
        metrics["refined"] = _refined(taught, assigned)
    history = folder.read_history() if folder else trainer.history
    training.model.metrics = metrics

    sample = features = None
    if processes.all_reduce_max(folder is not None):
        store = training.store
        if config.trains_heads_alone:  # whose perturbed copies are looked at, too
            store = open_data(config, training.model, image_set, observer)
        sample = _sample(config, training.model, store, vouch)
        features = every_feature(training.model, training.store)

    def write() -> None:
        if processes.is_first:
            metrics["baselines"] = _baselines(config, training.model, image_set, baselines)
        if folder is not None and sample is not None:
            folder.write_features(features)
            _write_results(folder, image_set, training.model, assigned, sample, metrics)

    processes.with_barrier(write)
    if folder is not None:
        training.model.training_features = _training_features(folder, training.model)
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


def load(path: str | Path, device: str = "auto", processes: Processes = ALONE) -> TrainedModel:
    """The model of a finished run, or of a model folder, ready to predict."""
    folder = RunFolder.open(Path(path))
    stored = read_config(folder)
    # A network trained in bfloat16 on a GPU answers in float32 on a CPU.
    network = stored.network
    found = spec_of_kept(network.backbone, folder.backbone)
    here = with_values(
        stored,
        {"train.device": device, "train.precision": "auto", "network.backbone": found},
    )
    needed: dict[str, Any] = {"n_clusters": stored.n_clusters}
    if network.backbone == VECTORS:
        needed |= {"data.n_features": stored.data.n_features}
    else:
        needed |= {"data.size": stored.data.size}
        needed |= {"network.mean": network.mean, "network.std": network.std}
    if stored.n_clusters is None and folder.search.is_dir() and not folder.model_file.exists():
        raise InputError(
            f"{folder.path} has no model yet: how many clusters it has is still looked for",
            remedy="finish it by dcdc fit {resume}",
        )
    if None in needed.values():
        raise InputError(
            f"{folder.config_file} does not describe a model: it needs {', '.join(needed)}"
        )
    weights = folder.read_model(to_mapping(stored))
    try:
        model = build_model(here, processes)
    except InputError:  # says enough: of a device that is not here, say
        raise
    except ValueError as error:
        raise InputError(f"{folder.config_file} does not describe a model: {error}") from None
    try:
        for name, own in model.network.state_dict().items():  # torch would round without a word
            if name in weights and weights[name].dtype.is_floating_point != own.is_floating_point():
                raise RuntimeError(f"{name} is of {weights[name].dtype}, not of {own.dtype}")
        model.network.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{folder.model_file} does not fit {folder.config_file}: {reason}"
        ) from None
    if stored.network.frozen:
        model.network.freeze_backbone()
    model.config, model.found_backbone = to_mapping(stored), found
    with suppress(InputError):  # absent or damaged: it is for the model card alone
        model.metrics = folder.read_metrics()
    model.names = folder.read_names()
    model.training_features = _training_features(folder, model)
    return model


def _training_features(folder: RunFolder, model: TrainedModel) -> Callable[[], Any]:
    return partial(folder.read_training_features, model.network.n_features)


def add_sample(folder: RunFolder, image_set: Data, device: str = "auto") -> None:
    """Writes what a report shows of `image_set`, the run's own images, by the run's model."""
    config = read_config(folder)
    with folder.writing(), cpu_threads(config.train.threads):
        model = load(folder.path, device)
        store = open_data(config, model, image_set, SilentObserver())
        sample = _sample(config, model, store, _answered(config, model, store).vouch)
        folder.write_sample(sample.arrays())


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
        assigned, vouch, _ = _answered(config, model, store, taught)
        sample = _sample(config, model, store, vouch)
        folder.write_features(every_feature(model, store))
        _write_results(folder, image_set, model, assigned, sample, metrics)


def from_pretrained(
    repo_or_folder: str | Path, device: str = "auto", *, revision: str | None = None
) -> TrainedModel:
    """The model of a folder or, by the extra `hub`, of a Hugging Face repository OWNER/NAME."""
    folder = Path(repo_or_folder)
    if not folder.exists():
        folder = fetch_folder(str(repo_or_folder), MODEL_FILES, revision)
    return load(folder, device)


def read_config(folder: RunFolder) -> RunConfig:
    try:
        return from_mapping(folder.read_config())
    except InputError as error:
        if str(folder.config_file) in str(error):
            raise
        raise InputError(f"{folder.config_file}: {error}") from None


def _refined(taught: Taught, assigned: Assigned) -> dict[str, Any]:
    """What the run came from, what it was taught, and how much of it the network has learnt."""
    rows = taught.labelled
    own = assigned.probabilities[rows].argmax(axis=1)
    return {
        "source": taught.source,
        "answers": taught.answers,
        "edits": dict(taught.counts),
        "labelled": len(rows),
        "learnt": int((own == taught.clusters[rows]).sum()),
        "outside": len(taught.outside),
    }


def _metrics(config: RunConfig, image_set: Data, assigned: Assigned) -> dict[str, Any]:
    """What people put into no cluster has no score; what was found to be in none has."""
    targets, assignments = image_set.targets, assigned.assignments
    counts = np.ones(len(assignments), bool)
    if assigned.said is not None:
        counts = assigned.said != OUTLIER
    found = slice(None) if assigned.outside is None else ~assigned.outside
    return {
        "n_images": image_set.n_images,
        "n_clusters": config.n_clusters,
        "n_classes": image_set.n_classes,
        **data_shape(image_set),
        "backbone": backbone_of(config),
        "scores": None if targets is None else score(targets[counts], assignments[counts]),
        "health": partition_health(assigned.probabilities[found], assignments[found]).to_dict(),
        **({"n_outliers": assigned.n_outliers} if config.outliers else {}),
    }


def data_shape(image_set: Data) -> dict[str, Any]:
    if isinstance(image_set, VectorSet):
        return {"n_features": image_set.n_features}
    return {"image_shape": list(image_set.image_shape)}


def backbone_of(config: RunConfig) -> dict[str, Any]:
    """Whose weights the features come from: figures with pretrained ones are marked as such."""
    name = config.network.backbone
    if name == VECTORS:
        return {"name": name, "pretrained": None}
    known = find_backbone(name).pretrained
    if known is None:
        return {"name": name, "pretrained": None}
    return {"name": name, "frozen": config.network.frozen, "pretrained": asdict(known)}


def _baselines(
    config: RunConfig, model: TrainedModel, image_set: Data, methods: Mapping[str, Baseline]
) -> dict[str, dict[str, float]]:
    """Beside heads on a frozen backbone they group its features: figures of one origin in a row."""
    if image_set.targets is None or not methods:
        return {}
    assert config.n_clusters is not None
    if config.network.frozen and isinstance(image_set, ImageSet):
        image_set = with_vectors(image_set, stored_features(model, image_set))
    assert image_set.targets is not None
    return {
        title: score(image_set.targets, method(image_set, config.n_clusters, config.train.seed))
        for title, method in methods.items()
    }


def _write_results(
    folder: RunFolder,
    image_set: Data,
    model: TrainedModel,
    assigned: Assigned,
    sample: Sample,
    metrics: dict[str, Any],
) -> None:
    """The metrics last: a folder that has them is a run that is done."""
    assert model.config is not None
    files = find_backbone(model.found_backbone or model.config["network"]["backbone"]).files
    folder.write_model(model.network, weights_note(metrics["dcdc"], model.config, files))
    folder.write_assignments(
        image_set.names,
        assigned.assignments,
        assigned.confidence,
        target_names(image_set),
        assigned.runner_up(),
    )
    folder.write_sample(sample.arrays())
    folder.write_hierarchy(hierarchy_of(sample, assigned, model.n_clusters))
    loading = f'dcdc.load("{folder.path.name}")'
    folder.write_card(model_card(folder.path.resolve().name, loading, model.config, metrics))
    folder.write_metrics(metrics)


def hierarchy_of(sample: Sample, assigned: Assigned, n_clusters: int) -> Hierarchy:
    points = sample.features.astype(np.float32)
    return join_clusters(points, assigned.assignments[sample.rows], n_clusters)


class _Answered(NamedTuple):
    assigned: Assigned
    vouch: np.ndarray | None = None
    """Which of the sampled images vouch for others, where there are outliers."""
    reference: np.ndarray | None = None
    """Their features, as a run keeps them."""


def _answered(
    config: RunConfig,
    model: TrainedModel,
    store: Store,
    taught: Taught | None = None,
    answers: Assigned | None = None,
) -> _Answered:
    """Of every image: what the network answers (`answers`, where they are known), but for what
    people settled."""
    assigned = model.assign_store(store) if answers is None else answers
    if taught is not None:
        assigned = assigned._replace(said=said(assigned.probabilities, taught))
    if not config.outliers:
        return _Answered(assigned)
    assert config.n_clusters is not None
    found = find_outliers(model, store, config.n_clusters, config.sizes, config.train.seed)
    if found is None:
        return _Answered(assigned)
    return _Answered(assigned._replace(outside=found.outside), found.vouch, found.reference)


def _sample(
    config: RunConfig, model: TrainedModel, store: Store, vouch: np.ndarray | None
) -> Sample:
    copy = None if has_stored_features(config.network) else perturbed_copy(config, 1)
    sample = take_sample(model, store, copy, config.train.seed)
    return sample if vouch is None else sample._replace(vouch=vouch.astype(np.int8))


def target_names(image_set: Data) -> list[str] | None:
    if image_set.targets is None:
        return None
    return [image_set.class_names[code] for code in image_set.targets]
