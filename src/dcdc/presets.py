"""The named recipes: each benchmark's row of the paper's tables, and ours.

`*-paper` follows the paper's text (no balance term). What the text leaves open is mostly as its
authors' public code has it (trunk, Sobel, crops, jitter, heads in turn, rB negatives), but not the
channel means of STL-10 and ImageNet's sets nor how weights start: docs/reproduce.md lists what
differs. A set's own name is our recipe for it.
"""

from dataclasses import fields, replace
from typing import Literal

from dcdc.config import (
    AugmentConfig,
    DataConfig,
    InstanceConfig,
    LossConfig,
    NetworkConfig,
    RunConfig,
    SelfLabelConfig,
    TrainConfig,
)
from dcdc.errors import InputError
from dcdc.nearest_name import nearest

TINY = 16
"""Pixels a side, at most: little to see, and quick on a CPU."""
CIFAR_MEAN, CIFAR_STD = (0.5071, 0.4866, 0.4409), (0.2009, 0.1984, 0.2023)

_PAPER_AUGMENT = AugmentConfig(
    crop_scale=(0.2, 1.0),
    brightness=0.4,
    contrast=0.4,
    saturation=0.4,
    hue=0.4,
    grey=0.2,
    flip=0.5,
)
# Turned, shifted, scaled and sheared a little: what a hand-written digit bears unflipped.
_GREY_AUGMENT = AugmentConfig(rotation=14.0, shift=0.15, scale=(0.85, 1.15), shear=6.0, noise=0.05)


def _paper(
    n_clusters: int,
    *,
    size: int,
    resize_to: int,
    temperature: float,
    batch_size: int,
    over_clusters: int = 70,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> RunConfig:
    return RunConfig(
        n_clusters=n_clusters,
        data=DataConfig(size=size),
        network=NetworkConfig(
            trunk="resnet34", sobel=True, over_clusters=over_clusters, mean=mean, std=std
        ),
        augment=replace(_PAPER_AUGMENT, resize_to=resize_to),
        loss=LossConfig(temperature=temperature),
        train=TrainConfig(epochs=200, batch_size=batch_size, n_repeats=3, heads="alternate"),
    )


def _ours(
    n_clusters: int,
    *,
    size: int,
    resize_to: int,
    trunk: Literal["resnet18", "resnet18-unpooled"],
    instance_epochs: int,
    instance_batch: int = 512,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> RunConfig:
    """The two views over both heads, on colour images and on features that instance contrast made.

    The cluster head begins from K-Means on the features, every perturbed copy is of a near
    neighbour, and at the end what the head is sure of teaches it the rest.
    """
    return RunConfig(
        n_clusters=n_clusters,
        data=DataConfig(size=size),
        network=NetworkConfig(trunk=trunk, mean=mean, std=std),
        augment=replace(_PAPER_AUGMENT, resize_to=resize_to, hue=0.1),
        instance=InstanceConfig(epochs=instance_epochs, batch_size=instance_batch),
        train=TrainConfig(
            epochs=20,
            batch_size=512,
            n_repeats=1,
            heads="joint",
            head_start="spherical-k-means",
            neighbours=10,
            learning_rate=3e-4,
            schedule="cosine",
            evaluate_every=5,
        ),
        self_label=SelfLabelConfig(epochs=15, threshold=0.95, learning_rate=3e-4),
    )


PRESETS: dict[str, RunConfig] = {
    "digits": RunConfig(
        n_clusters=10,
        network=NetworkConfig(trunk="small", over_clusters=70),
        augment=_GREY_AUGMENT,
        loss=LossConfig(temperature=0.5),
        train=TrainConfig(
            epochs=14,
            batch_size=64,
            over_clustering_first=0.6,
            head_start="k-means",
            threads=1,
            checkpoint_every=5,
        ),
        self_label=SelfLabelConfig(epochs=4, threshold=0.9, learning_rate=1e-3),
    ),
    "cifar10": _ours(
        10,
        size=32,
        resize_to=40,
        trunk="resnet18-unpooled",
        instance_epochs=200,
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
    ),
    "cifar100-20": _ours(
        20,
        size=32,
        resize_to=40,
        trunk="resnet18-unpooled",
        instance_epochs=200,
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
    ),
    # The figures in docs/ are of `stl10@train+test`: by its plain name the set brings 100,000
    # unlabelled images, and features by contrast then take 8.5 times as many steps.
    "stl10": _ours(
        10, size=96, resize_to=112, trunk="resnet18", instance_epochs=500, instance_batch=256
    ),
    "cifar10-paper": _paper(
        10, size=32, resize_to=40, temperature=0.5, batch_size=50, mean=CIFAR_MEAN, std=CIFAR_STD
    ),
    "cifar100-20-paper": _paper(
        20, size=32, resize_to=40, temperature=0.3, batch_size=200, mean=CIFAR_MEAN, std=CIFAR_STD
    ),
    # As above: with the unlabelled images, which the paper has, it was never run.
    "stl10-paper": _paper(10, size=96, resize_to=112, temperature=0.3, batch_size=100),
    "imagenet-10-paper": _paper(10, size=96, resize_to=112, temperature=0.5, batch_size=50),
    "imagenet-dogs-paper": _paper(15, size=96, resize_to=112, temperature=0.5, batch_size=30),
    "tiny-imagenet-paper": _paper(
        200, size=64, resize_to=80, temperature=0.5, batch_size=300, over_clusters=700
    ),
}


def largest_side(on_gpu: bool) -> int:
    """Pixels a side that photos of any size are brought to: the paper's largest, or a CPU's."""
    return 96 if on_gpu else 32


def preset(name: str) -> RunConfig:
    if name not in PRESETS:
        raise InputError(
            f"unknown preset {name!r}{nearest(name, PRESETS)} Presets: {', '.join(PRESETS)}"
        )
    return PRESETS[name]


FEWEST_FOR_PATCHES = 1_000
"""Images: copies of fewer do not say which of 1,600 answers are steady."""
FEWEST_FOR_CONTRAST = 2_000
"""Images: features by instance contrast were tried on 13,000 and more."""


def suggest(*, n_images: int, side: int, channels: int, n_clusters: int, on_gpu: bool) -> RunConfig:
    """Settings for images that no preset knows.

    Photos on a GPU take the recipe of `cifar10` and `stl10`, as long as there; on a CPU, where
    there are enough of them, a dictionary of patches, which takes minutes. For others the batch
    grows with the clusters, as the paper argues; tiny images, and all on a CPU, take the small
    trunk; grey images, where a mirror image may mean something else, are turned and shifted instead
    of flipped and recoloured; epochs fall as images grow in number, further on a CPU. Features come
    first and the cluster head starts by K-Means on them.
    """
    tiny = side <= TINY
    if on_gpu and not tiny and channels == 3 and n_images >= FEWEST_FOR_CONTRAST:
        return _for_photos(n_images, side, n_clusters)
    if not on_gpu and not tiny and channels == 3 and n_images >= FEWEST_FOR_PATCHES:
        return _by_patches(n_images, n_clusters)
    n_steps, fewest_epochs = (20_000, 20) if on_gpu else (1_500, 4)
    if tiny:
        n_steps, fewest_epochs = 1_000, 20
    batch_size = max(2, min(max(32, 5 * n_clusters), 300, n_images // 2))
    # Half of the epochs train one head, half train both in turn.
    steps_per_epoch = 1.5 * (n_images // batch_size)
    epochs = round(n_steps / steps_per_epoch)
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(
            trunk="small" if tiny or not on_gpu else "resnet18",
            over_clusters=_over_clusters(n_images, n_clusters),
        ),
        augment=_GREY_AUGMENT if channels == 1 else replace(_PAPER_AUGMENT, hue=0.1),
        train=TrainConfig(
            epochs=min(max(epochs, fewest_epochs), 200),
            batch_size=batch_size,
            over_clustering_first=0.5,
            head_start="k-means",
            threads=1 if tiny else 0,
        ),
    )


def _for_photos(n_images: int, side: int, n_clusters: int) -> RunConfig:
    small = side <= 48

    def epochs(n_steps: int, batch_size: int, fewest: int, most: int) -> int:
        return min(max(n_steps * batch_size // n_images, fewest), most)

    batch = 512 if small and n_images >= 4_000 else 256
    config = _ours(
        n_clusters,
        size=side,
        resize_to=round(1.2 * side),
        trunk="resnet18-unpooled" if small else "resnet18",
        instance_epochs=epochs(25_000, batch, 30, 500),
        instance_batch=batch,
    )
    return replace(
        config,
        network=replace(config.network, over_clusters=_over_clusters(n_images, n_clusters)),
        train=replace(
            config.train,
            epochs=epochs(2_500, 512, 5, 20),
            batch_size=min(512, n_images // 2),
            neighbours=min(10, max(1, n_images // (5 * n_clusters))),
        ),
        self_label=replace(config.self_label, epochs=epochs(1_800, 512, 4, 15)),
    )


def _by_patches(n_images: int, n_clusters: int) -> RunConfig:
    """Crops are large: what a patch trunk knows of a small one is which patches it has."""
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(trunk="patches", over_clusters=_over_clusters(n_images, n_clusters)),
        augment=replace(_PAPER_AUGMENT, hue=0.1, crop_scale=(0.6, 1.0)),
        train=TrainConfig(
            epochs=3,
            batch_size=max(256, min(5 * n_clusters, n_images // 2)),
            n_repeats=1,
            heads="joint",
            head_start="spherical-k-means",
            learning_rate=3e-4,
            schedule="cosine",
        ),
    )


def _over_clusters(n_images: int, n_clusters: int) -> int:
    return min(max(70, 7 * n_clusters // 2), max(2, n_images // 4))


def for_gpu(config: RunConfig) -> bool:
    """Whether a CPU would take days for it."""
    return config.network.is_deep


def length(config: RunConfig) -> str:
    """Its epochs, phase by phase."""
    instance, self_label = config.instance.epochs, config.self_label.epochs
    parts = [
        f"{instance} epochs of instance {config.instance.kind}" if instance else "",
        f"{config.train.epochs} epochs" + (" of both heads" if instance or self_label else ""),
        f"{self_label} of self-labels" if self_label else "",
    ]
    return ", ".join(part for part in parts if part)


def copies(n: int) -> str:
    return "one perturbed copy" if n == 1 else f"{n} perturbed copies"


def explained(config: RunConfig) -> list[tuple[str, str]]:
    """The settings that people change first, for a person, and how each is changed."""
    train, network, augment = config.train, config.network, config.augment
    perturbations = [
        field.name
        for field in fields(AugmentConfig)
        if field.name not in ("resize_to", "crop_ratio")
        and getattr(augment, field.name) != field.default
    ]
    instance, self_label = config.instance.epochs, config.self_label.epochs
    features = ("--set train.over_clustering_first=", f"{train.over_clustering_first:g} epochs")
    if instance:
        features = (
            "--set instance.epochs=",
            f"{instance} epochs of instance {config.instance.kind}",
        )
    elif network.trunk == "patches":
        features = ("--set network.trunk=", "a dictionary of patches")
    last = [(f"self-labels at the end: {self_label} epochs", "--set self_label.epochs=")]
    return [
        (f"images of {config.data.size} pixels a side", "--size"),
        (f"trunk {network.trunk}", "--set network.trunk=resnet18, resnet34, small or patches"),
        (f"batch of {train.batch_size} images", "--batch-size"),
        (f"{copies(train.n_repeats)} of each", "--set train.n_repeats="),
        (f"{train.epochs} epochs, seed {train.seed}", "--epochs, --seed"),
        (f"features first: {features[1]}, then K-Means, then both heads", features[0]),
        *(last if self_label else []),
        (f"{network.over_clusters} over-clusters", "--set network.over_clusters="),
        (f"perturbed by {', '.join(perturbations)}", "--set augment.NAME="),
    ]
