"""A config meets its images: what they and the machine decide is filled in, or refused."""

from dataclasses import asdict, replace

import torch

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.config import DataConfig, NetworkConfig, Precision, RunConfig
from dcdc.data import Data, ImageSet, VectorSet, channel_statistics
from dcdc.engine.phase import Phase
from dcdc.errors import InputError
from dcdc.networks import Pretrained, find_backbone
from dcdc.networks.feature_vectors import VECTORS
from dcdc.phases.heads import Heads
from dcdc.prepare.cluster_number import count_clusters
from dcdc.prepare.memory import check_memory
from dcdc.runtime.device import autocast, pick_device, usual_precision
from dcdc.runtime.environment import available_cores

_MOST_THREADS_A_CORE = 8


def require_several(n_images: int) -> None:
    if n_images < 2:
        raise InputError("there is one image alone, and nothing to group: give more")


def resolve(config: RunConfig, image_set: Data, n_processes: int = 1) -> RunConfig:
    """Fills in what images or feature vectors decide, and refuses what they, or the processes,
    do not allow."""
    n_images = image_set.n_images
    require_several(n_images)
    n_clusters = count_clusters(config.n_clusters, image_set)
    if n_images < n_clusters:
        raise InputError(
            f"{n_images} images cannot fill {n_clusters} clusters", remedy="lower {n_clusters}"
        )
    _check_sizes(config, n_images, n_processes)
    if isinstance(image_set, VectorSet):
        data, network = _with_vectors(config, image_set)
        has_copies = image_set.copies is not None
    else:
        data, network = _with_images(config, image_set)
        has_copies = False
    if has_stored_features(network):
        _check_phases_of_vectors(config, has_copies=has_copies)
    train = config.train
    if train.threads > _MOST_THREADS_A_CORE * available_cores():
        raise InputError(
            f"{train.threads} threads would stand in each other's way on {available_cores()} cores",
            remedy="lower {train.threads}",
        )
    device = pick_device(train.device)
    precision = resolve_precision(train.precision, device, network)
    resolved = replace(
        config,
        n_clusters=n_clusters,
        data=data,
        network=network,
        phases=tuple(each.resolved() for each in config.phases if isinstance(each, Phase)),
        train=replace(train, precision=precision),
    )
    # These check their own arguments: better here than after a run folder was made.
    original_copy(resolved)
    perturbed_copy(resolved, 1)
    autocast(device, precision)
    check_memory(resolved, image_set, device)
    return resolved


def has_stored_features(network: NetworkConfig) -> bool:
    """Whether the heads train on feature vectors: given ones, or those of a frozen backbone."""
    return network.frozen or network.backbone == VECTORS


def _with_vectors(config: RunConfig, vectors: VectorSet) -> tuple[DataConfig, NetworkConfig]:
    network = config.network
    if network.backbone != VECTORS:
        raise InputError(
            f"feature vectors go past the backbone {network.backbone}: they are features already",
            remedy="leave {network.backbone} out",
        )
    if network.frozen or network.sobel or network.mean or network.input_size:
        raise InputError(
            "network.frozen, sobel, mean, std and input_size are for images, not for feature "
            "vectors: leave them out"
        )
    n_features = config.data.n_features or vectors.n_features
    if n_features != vectors.n_features:
        raise InputError(
            f"the run has vectors of {n_features} features, these have {vectors.n_features}: give "
            "those of the same backbone"
        )
    return replace(config.data, n_features=n_features), network


def _with_images(config: RunConfig, images: ImageSet) -> tuple[DataConfig, NetworkConfig]:
    network = config.network
    if network.backbone == VECTORS:
        raise InputError(
            "the backbone vectors is for feature vectors, these are images",
            remedy="choose another {network.backbone}",
        )
    backbone = find_backbone(network.backbone)
    known = backbone.pretrained
    if network.frozen and known is None:
        raise InputError(f"the backbone {network.backbone} has no pretrained weights to freeze")
    if not network.frozen and not backbone.trainable:
        raise InputError(f"the backbone {network.backbone} cannot be trained: leave it frozen")
    mean, std = network.mean, network.std
    if mean is None or std is None:
        if known is None:
            mean, std = channel_statistics(images.images)
        else:
            mean, std = _own_statistics(known, images.channels)
    if not len(mean) == len(std) == images.channels:
        raise InputError(
            f"network.mean and network.std have {len(mean)} and {len(std)} values "
            f"for images of {images.channels} channel(s)"
        )
    size = network.input_size or (known.size if known else None)
    return (
        replace(config.data, size=images.side),
        replace(network, mean=mean, std=std, input_size=size),
    )


def _own_statistics(
    known: Pretrained, channels: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A pretrained backbone's; grey images get the mean over its channels."""
    if len(known.mean) == channels:
        return known.mean, known.std
    return (sum(known.mean) / len(known.mean),), (sum(known.std) / len(known.std),)


def _check_phases_of_vectors(config: RunConfig, *, has_copies: bool) -> None:
    for name, phase in config.active_phases.items():
        if not phase.reads_vectors:
            raise InputError(
                f"the phase {name} perturbs images, and stored features have no perturbed copies",
                remedy="list heads alone in {phases}",
            )
        if isinstance(phase, Heads) and not phase.neighbours and not has_copies:
            raise InputError(
                "stored features have no perturbed copies: neighbours take their place",
                remedy=f"set {{{name}.neighbours}} to 1 or more",
            )


def original_copy(config: RunConfig) -> OriginalCopy | None:
    """None of feature vectors."""
    if config.network.backbone == VECTORS:
        return None
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


def main_batch_size(config: RunConfig) -> int:
    """Of the main phase, or of the first that trains."""
    sizes = batch_sizes(config)
    return sizes.get(config.main_phase, next(iter(sizes.values())))


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


def resolve_precision(chosen: Precision, device: torch.device, network: NetworkConfig) -> Precision:
    """Stored features are computed once, and read in full precision: the rest takes seconds."""
    if chosen != "auto":
        return chosen
    return "float32" if has_stored_features(network) else usual_precision(device)
