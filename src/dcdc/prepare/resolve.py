"""A config meets its images: what they and the machine decide is filled in, or refused."""

from dataclasses import asdict, replace

import torch

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.config import Precision, RunConfig
from dcdc.data import ImageSet, channel_statistics
from dcdc.engine.phase import Phase
from dcdc.errors import InputError
from dcdc.networks import BACKBONES
from dcdc.runtime.device import autocast, pick_device, usual_precision


def resolve(config: RunConfig, image_set: ImageSet, n_processes: int = 1) -> RunConfig:
    """Fills in what the images decide, and refuses what they or the processes cannot bear."""
    n_images = image_set.n_images
    n_clusters = count_clusters(config.n_clusters, image_set)
    if n_images < n_clusters:
        raise InputError(
            f"{n_images} images cannot fill {n_clusters} clusters", remedy="lower {n_clusters}"
        )
    _check_sizes(config, n_images, n_processes)
    mean, std = config.network.mean, config.network.std
    if mean is None or std is None:
        mean, std = channel_statistics(image_set.images)
    if not len(mean) == len(std) == image_set.channels:
        raise InputError(
            f"network.mean and network.std have {len(mean)} and {len(std)} values "
            f"for images of {image_set.channels} channel(s)"
        )
    BACKBONES.get(config.network.backbone)
    train = config.train
    device = pick_device(train.device)
    precision = resolve_precision(train.precision, device)
    resolved = replace(
        config,
        n_clusters=n_clusters,
        data=replace(config.data, size=image_set.side),
        network=replace(config.network, mean=mean, std=std),
        phases=tuple(phase.resolved() for phase in _phases(config)),
        train=replace(train, precision=precision),
    )
    # These check their own arguments: better here than after a run folder was made.
    original_copy(resolved)
    perturbed_copy(resolved, 1)
    autocast(device, precision)
    return resolved


def original_copy(config: RunConfig) -> OriginalCopy:
    assert config.data.size is not None
    return OriginalCopy(config.data.size, config.augment.resize_to)


def perturbed_copy(config: RunConfig, n_repeats: int) -> PerturbedCopy:
    perturbations = asdict(config.augment)
    del perturbations["resize_to"]  # the original copy's
    return PerturbedCopy(n_repeats=n_repeats, **perturbations)


def batch_sizes(config: RunConfig) -> dict[str, int]:
    """Of each active phase by name: its own, or that of the phase before."""
    sizes: dict[str, int] = {}
    size = 0
    for name, phase in config.active_phases.items():
        size = phase.batch_size or size
        sizes[name] = size
    return sizes


def _phases(config: RunConfig) -> tuple[Phase, ...]:
    return tuple(phase for phase in config.phases if isinstance(phase, Phase))


def _check_sizes(config: RunConfig, n_images: int, n_processes: int) -> None:
    active = config.active_phases
    if not any(phase.is_scored for phase in active.values()):
        raise InputError("no phase trains the cluster head", remedy="list heads in {phases}")
    for name, phase in active.items():
        assert isinstance(phase, Phase)
        phase.check_images(name, n_images)
    for name, size in batch_sizes(config).items():
        if size > n_images:
            raise InputError(
                f"a batch of {size} is larger than the set of {n_images} images",
                remedy=f"lower {{{name}.batch_size}}",
            )
        if size < n_processes:
            raise InputError(
                f"a batch of {size} images cannot be shared by {n_processes} processes",
                remedy=f"raise {{{name}.batch_size}}, or start fewer processes",
            )


def resolve_precision(chosen: Precision, device: torch.device) -> Precision:
    return usual_precision(device) if chosen == "auto" else chosen


def count_clusters(asked_for: int | None, image_set: ImageSet) -> int:
    n_clusters = asked_for or image_set.n_classes
    if n_clusters is None:
        raise InputError(
            "the images have no classes to count",
            remedy="say by {n_clusters} how many clusters to find",
        )
    return n_clusters
