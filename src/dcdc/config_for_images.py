"""A config meets its images: what they and the machine decide is filled in, or refused."""

from dataclasses import replace

import torch

from dcdc.config import Precision, RunConfig, TrainConfig
from dcdc.copies_from_config import build_original_copy, build_perturbed_copy
from dcdc.data import ImageSet, channel_statistics, label_column_of
from dcdc.errors import InputError
from dcdc.presets import largest_side, suggest
from dcdc.runtime.device import autocast, pick_device, usual_precision


def with_label_column(config: RunConfig, n_classes: int | None = None) -> RunConfig:
    """Names the labels where no column is named and one alone has as many classes as clusters.

    They are for scores alone; CIFAR-100 on a hub has both 100 classes and 20.
    """
    data, n_classes = config.data, config.n_clusters or n_classes
    if data.target is not None or n_classes is None:
        return config
    return replace(config, data=replace(data, target=label_column_of(data.source, n_classes)))


def resolve(config: RunConfig, image_set: ImageSet, n_processes: int = 1) -> RunConfig:
    """Fills in what the images decide, and refuses what they or the processes cannot bear."""
    n_images = image_set.n_images
    n_clusters = _count_clusters(config.n_clusters, image_set)
    if n_images < n_clusters:
        raise InputError(f"{n_images} images cannot fill {n_clusters} clusters: lower --clusters")
    _check_sizes(config, n_images, n_processes)
    mean, std = config.network.mean, config.network.std
    if mean is None or std is None:
        mean, std = channel_statistics(image_set.images)
    if not len(mean) == len(std) == image_set.channels:
        raise InputError(
            f"network.mean and network.std have {len(mean)} and {len(std)} values "
            f"for images of {image_set.channels} channel(s)"
        )
    train = config.train
    device = pick_device(train.device)
    precision = resolve_precision(train.precision, device)
    resolved = replace(
        config,
        n_clusters=n_clusters,
        data=replace(config.data, size=image_set.side),
        network=replace(config.network, mean=mean, std=std),
        train=replace(train, over_clustering_first=epochs_alone(train), precision=precision),
    )
    # These check their own arguments: better here than after a run folder was made.
    build_original_copy(resolved)
    build_perturbed_copy(resolved)
    autocast(device, precision)
    return resolved


def _check_sizes(config: RunConfig, n_images: int, n_processes: int) -> None:
    batches = {"--batch-size": config.train.batch_size}
    if config.instance.epochs:
        batches["--set instance.batch_size="] = config.instance.batch_size
    if config.self_label.epochs and config.self_label.batch_size:
        batches["--set self_label.batch_size="] = config.self_label.batch_size
    for flag, size in batches.items():
        if size > n_images:
            raise InputError(
                f"a batch of {size} is larger than the set of {n_images} images: lower {flag}"
            )
        if size < n_processes:
            raise InputError(
                f"a batch of {size} images cannot be shared by {n_processes} processes: raise "
                f"{flag}, or start fewer processes"
            )
    if config.train.neighbours >= n_images:
        raise InputError(
            f"{n_images} images do not have {config.train.neighbours} neighbours each: lower "
            "train.neighbours"
        )


def epochs_alone(train: TrainConfig) -> float:
    """Of the over-clustering head, in whole epochs."""
    alone = train.over_clustering_first
    return alone if alone >= 1 else float(min(round(alone * train.epochs), train.epochs - 1))


def resolve_precision(chosen: Precision, device: torch.device) -> Precision:
    return usual_precision(device) if chosen == "auto" else chosen


def suggest_for(image_set: ImageSet, n_clusters: int | None, device: str) -> RunConfig:
    """Settings for images that no preset knows."""
    return suggest(
        n_images=image_set.n_images,
        side=image_set.side,
        channels=image_set.channels,
        n_clusters=_count_clusters(n_clusters, image_set),
        on_gpu=has_gpu(device),
    )


def largest_side_for(device: str) -> int:
    return largest_side(has_gpu(device))


def has_gpu(device: str) -> bool:
    return pick_device(device).type != "cpu"


def _count_clusters(asked_for: int | None, image_set: ImageSet) -> int:
    n_clusters = asked_for or image_set.n_classes
    if n_clusters is None:
        raise InputError("the images have no classes to count: say how many --clusters to find")
    return n_clusters
