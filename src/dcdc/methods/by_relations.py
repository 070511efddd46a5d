"""What DAC, DDC and DCCM share: a small network, copies, and one phase over pairs of images."""

from collections.abc import Mapping, Sequence
from typing import Any

from dcdc.config import AugmentConfig, NetworkConfig, RunConfig, TrainConfig
from dcdc.data import ImageSet
from dcdc.methods.by_run import at_least_seven_steps, cluster_by_run
from dcdc.methods.context import Clustering, Context
from dcdc.phases.relate import Relate
from dcdc.prepare.presets import GREY_AUGMENT
from dcdc.prepare.suggestions import TINY, has_gpu

COPIES = AugmentConfig(rotation=20.0, shift=0.18, scale=(0.85, 1.15), flip=0.5)
"""As the papers of DAC and DCCM have them."""
BATCH = 128
"""On a GPU, where the papers have 32: a step takes about as long, and has 16 times the pairs."""
SMALL_BATCH = 32
SMALL_N_STEPS = 2_700
"""For tiny images, and on a CPU."""
FEWEST_STEPS = 50
"""By the same answers: where an epoch has fewer, it is several passes."""
MOST_PASSES = 10
K_MEANS_AT = (0.25, 0.5, 0.75)
"""For tiny images, and on a CPU: heads that start at random stay in the poor partitions that they
find first (docs/log.md)."""


def cluster_by_relations(
    published: Mapping[str, Any],
    small: Mapping[str, Any],
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    given: Mapping[str, Any],
    changes: Sequence[str],
) -> Clustering:
    """Of the phase's settings `published` are those of a paper, for photos on a GPU; for tiny
    images, and on a CPU, `small` ones are laid over them. `given` are the person's own, or None."""
    tiny = image_set.side <= TINY
    is_small = tiny or not has_gpu(context.device)
    asked = {name: value for name, value in given.items() if value is not None}
    usual = at_least_seven_steps(SMALL_BATCH if is_small else BATCH, image_set)
    batch_size = asked.get("batch_size", usual)
    n_steps = max(1, image_set.n_images // max(1, batch_size))
    passes = min(MOST_PASSES, -(-FEWEST_STEPS // n_steps))
    settings = {**published, "batch_size": batch_size, "n_passes": passes}
    if is_small:
        settings |= {"epochs": max(4, round(SMALL_N_STEPS / (n_steps * passes))), **small}
    settings |= asked
    config = RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(backbone="small" if is_small else "convnet", over_clusters=0),
        augment=COPIES if image_set.channels == 3 else GREY_AUGMENT,
        phases=(Relate(),),
        train=TrainConfig(
            threads=1 if tiny else 0, evaluate_every=max(1, settings["epochs"] // 20)
        ),
    )
    values = {f"{Relate.kind}.{name}": value for name, value in settings.items()}
    return cluster_by_run(config, image_set, seed, context, values, changes)
