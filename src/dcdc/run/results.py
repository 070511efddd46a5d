"""What a run answers, and what it leaves in its folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from dcdc.config import RunConfig, to_mapping
from dcdc.data import Data, ImageSet, VectorSet
from dcdc.data.store import Store
from dcdc.engine.assignment import Assigned
from dcdc.engine.history import append_history
from dcdc.engine.model_card import model_card
from dcdc.engine.model_files import weights_note
from dcdc.engine.observer import SilentObserver
from dcdc.engine.outliers import find_outliers
from dcdc.engine.sample import Sample, every_feature, take_sample
from dcdc.engine.settled import said
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.metrics import partition_health, score
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.metrics.health import OUTLIER
from dcdc.metrics.hierarchy import Hierarchy, join_clusters
from dcdc.networks import find_backbone
from dcdc.networks.feature_vectors import VECTORS
from dcdc.networks.pretrained import keep_files
from dcdc.prepare.assembly import open_data
from dcdc.prepare.frozen_features import with_vectors
from dcdc.prepare.resolve import has_stored_features, perturbed_copy
from dcdc.prepare.stored_features import stored_features
from dcdc.run.loading import load, read_config
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads

Baseline = Callable[[Data, int, int], np.ndarray]
"""Images, clusters and a seed in, N assignments out."""


def metrics_of(config: RunConfig, image_set: Data, assigned: Assigned) -> dict[str, Any]:
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


def refinement_of(taught: Taught, assigned: Assigned) -> dict[str, Any]:
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


def scored_beside(
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


class Answered(NamedTuple):
    assigned: Assigned
    vouch: np.ndarray | None = None
    """Which of the sampled images vouch for others, where there are outliers."""
    reference: np.ndarray | None = None
    """Their features, as a run keeps them."""


def answered(
    config: RunConfig,
    model: TrainedModel,
    store: Store,
    taught: Taught | None = None,
    answers: Assigned | None = None,
) -> Answered:
    """Of every image: what the network answers (`answers`, where they are known), but for what
    people settled."""
    assigned = model.assign_store(store) if answers is None else answers
    if taught is not None:
        assigned = assigned._replace(said=said(assigned.probabilities, taught))
    if not config.outliers:
        return Answered(assigned)
    assert config.n_clusters is not None
    found = find_outliers(model, store, config.n_clusters, config.sizes, config.train.seed)
    if found is None:
        return Answered(assigned)
    return Answered(assigned._replace(outside=found.outside), found.vouch, found.reference)


def sample_of(
    config: RunConfig, model: TrainedModel, store: Store, vouch: np.ndarray | None
) -> Sample:
    copy = None if has_stored_features(config.network) else perturbed_copy(config, 1)
    sample = take_sample(model, store, copy, config.train.seed)
    return sample if vouch is None else sample._replace(vouch=vouch.astype(np.int8))


def write_results(
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


def target_names(image_set: Data) -> list[str] | None:
    if image_set.targets is None:
        return None
    return [image_set.class_names[code] for code in image_set.targets]


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
