"""Settings for images that no preset knows: what their number, size and colours suggest."""

from dataclasses import replace

from dcdc.config import NetworkConfig, RunConfig, TrainConfig, with_values
from dcdc.data import Data, VectorSet
from dcdc.networks.feature_vectors import VECTORS
from dcdc.phases.contrast import Contrast
from dcdc.phases.frozen_heads import FrozenHeads
from dcdc.phases.heads import Heads
from dcdc.prepare.presets import GREY_AUGMENT, PAPER_AUGMENT, by_contrast
from dcdc.runtime.device import pick_device

TINY = 16
"""Pixels a side, at most: little to see, and quick on a CPU."""
FINE_TUNING_RATE = 0.1
"""Of a pretrained backbone that trains on, as a share of the heads' learning rate."""


def suggest_for(
    image_set: Data,
    n_clusters: int,
    device: str,
    *,
    pretrained: str | None = None,
    fine_tune: bool = False,
) -> RunConfig:
    """`pretrained`: the backbone whose features to take, frozen or fine-tuned."""
    if isinstance(image_set, VectorSet):
        config = on_features(image_set.n_images, n_clusters, VECTORS)
        return _quick(config) if image_set.vectors.size <= FEW_NUMBERS else config
    if pretrained is not None:
        chosen = fine_tuned if fine_tune else on_features
        return chosen(image_set.n_images, n_clusters, pretrained)
    return suggest(
        n_images=image_set.n_images,
        side=image_set.side,
        channels=image_set.channels,
        n_clusters=n_clusters,
        on_gpu=has_gpu(device),
    )


def largest_side_for(device: str) -> int:
    """Pixels a side that photos of any size are brought to: the paper's largest, or a CPU's."""
    return 96 if has_gpu(device) else 32


def has_gpu(device: str) -> bool:
    return pick_device(device).type != "cpu"


FEWEST_FOR_CONTRAST = 2_000
"""Images: features by instance contrast were tried on 13,000 and more."""


def suggest(*, n_images: int, side: int, channels: int, n_clusters: int, on_gpu: bool) -> RunConfig:
    """Settings for images that no preset knows.

    Many photos on a GPU take the recipe of `stl10`, as long as there; all photos on a
    CPU a dictionary of patches, which takes seconds for hundreds and minutes for thousands. For
    others the batch grows with the clusters, as the paper argues; tiny images, and grey ones on a
    CPU, take the small backbone; grey images, where a mirror image may mean something else, are
    turned and shifted instead of flipped and recoloured; epochs fall as images grow in number,
    further on a CPU. Features come first and the cluster head starts by K-Means on them.
    """
    tiny = side <= TINY
    if on_gpu and not tiny and channels == 3 and n_images >= FEWEST_FOR_CONTRAST:
        return _for_photos(n_images, side, n_clusters)
    if not on_gpu and not tiny and channels == 3:
        return _by_patches(n_images, n_clusters)
    n_steps, fewest_epochs = (20_000, 20) if on_gpu else (1_500, 4)
    if tiny:
        n_steps, fewest_epochs = 1_000, 20
    batch_size = max(2, min(max(32, 5 * n_clusters), 300, n_images // 2))
    # Half of the epochs train one head, half train both in turn.
    steps_per_epoch = 1.5 * max(1, n_images // batch_size)
    epochs = round(n_steps / steps_per_epoch)
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(
            backbone="small" if tiny or not on_gpu else "resnet18",
            over_clusters=_over_clusters(n_images, n_clusters),
        ),
        augment=GREY_AUGMENT if channels == 1 else replace(PAPER_AUGMENT, hue=0.1),
        phases=(
            Heads(
                epochs=min(max(epochs, fewest_epochs), 200),
                batch_size=batch_size,
                over_clustering_first=0.5,
                initialisation="k-means",
            ),
        ),
        train=TrainConfig(threads=1 if tiny else 0),
    )


def _for_photos(n_images: int, side: int, n_clusters: int) -> RunConfig:
    small = side <= 48
    batch = 512 if small and n_images >= 4_000 else 256
    return by_contrast(
        n_clusters,
        size=side,
        backbone="resnet18-unpooled" if small else "resnet18",
        contrast=Contrast(epochs=_epochs(40_000, batch, n_images, 30, 800), batch_size=batch),
        heads=FrozenHeads(
            epochs=_epochs(760, 512, n_images, 6, 30),
            batch_size=min(512, n_images // 2),
            neighbours=_neighbours(n_images, n_clusters),
            n_heads=32,
        ),
        self_label_epochs=_epochs(7_000, 512, n_images, 4, 60),
    )


def _by_patches(n_images: int, n_clusters: int) -> RunConfig:
    """Crops are large: what a patch backbone knows of a small one is which patches it has."""
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(
            backbone="patches", over_clusters=_over_clusters(n_images, n_clusters)
        ),
        augment=replace(PAPER_AUGMENT, hue=0.1, crop_scale=(0.6, 1.0)),
        phases=(
            Heads(
                epochs=3,
                batch_size=max(2, min(max(256, 5 * n_clusters), n_images // 2)),
                n_repeats=1,
                order="joint",
                initialisation="spherical-k-means",
                learning_rate=3e-4,
                schedule="cosine",
            ),
        ),
    )


FEW_NUMBERS = 2**20
"""In feature vectors. A step is then short: two threads would wait for each other, and an
evaluation takes as long as some steps."""
N_HEADS = 16
"""Over stored features they cost seconds. Each has a K-Means start of its own, and the one with the
lowest loss answers: its ACC is among the best of them (docs/log.md)."""


def on_features(n_images: int, n_clusters: int, backbone: str) -> RunConfig:
    """DCDC's two views over feature vectors and their neighbours: given ones, or those of a frozen
    pretrained backbone."""
    batch_size = max(2, min(256, n_images // 2))
    epochs = max(2, -(-400 // max(1, n_images // batch_size)))
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(
            backbone=backbone, frozen=backbone != VECTORS, over_clusters=0, sub_heads=N_HEADS
        ),
        phases=(
            Heads(
                epochs=epochs,
                batch_size=batch_size,
                n_repeats=1,
                order="joint",
                initialisation="spherical-k-means",
                neighbours=_neighbours(n_images, n_clusters),
                schedule="cosine",
            ),
        ),
        train=TrainConfig(evaluate_every=max(1, epochs // 20)),
    )


MOST_EPOCHS_OF_FEW = 50
"""Of few feature vectors: more change no answer (iris, wine and the like), and take seconds."""


def _quick(config: RunConfig) -> RunConfig:
    epochs = min(config.epochs, MOST_EPOCHS_OF_FEW)
    values = {"train.threads": 1, "train.evaluate_every": max(1, epochs // 20)}
    return with_values(config, values | {"heads.epochs": epochs})


def fine_tuned(n_images: int, n_clusters: int, backbone: str) -> RunConfig:
    """A pretrained backbone that goes on learning beside its heads: partners are perturbed copies
    of neighbours by its first features, then images teach by their own sure answers."""
    batch_size = max(2, min(256, n_images // 2))
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(backbone=backbone, backbone_rate=FINE_TUNING_RATE, over_clusters=0),
        augment=replace(PAPER_AUGMENT, hue=0.1, crop_scale=(0.4, 1.0)),
        phases=(
            Heads(
                epochs=_epochs(2_000, batch_size, n_images, 2, 50),
                batch_size=batch_size,
                n_repeats=1,
                order="joint",
                initialisation="spherical-k-means",
                neighbours=_neighbours(n_images, n_clusters),
                schedule="cosine",
            ),
        ),
    )


def _epochs(n_steps: int, batch_size: int, n_images: int, fewest: int, most: int) -> int:
    """For about so many steps."""
    return min(max(n_steps * batch_size // n_images, fewest), most)


def _neighbours(n_images: int, n_clusters: int) -> int:
    return min(10, max(1, n_images // (5 * n_clusters)))


def _over_clusters(n_images: int, n_clusters: int) -> int:
    return min(max(70, 7 * n_clusters // 2), max(2, n_images // 4))
