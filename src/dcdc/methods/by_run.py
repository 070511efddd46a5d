"""Methods that are a config: DCDC's engine carries them out, and only settings differ."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcdc.config import RunConfig, parse_settings, with_values
from dcdc.data import Data, ImageSet
from dcdc.errors import InputError
from dcdc.methods.context import Clustering, Context
from dcdc.phases.heads import heads_of
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.presets import preset
from dcdc.prepare.suggestions import TINY, has_gpu, suggest_for
from dcdc.run import run
from dcdc.run_folder import RunFolder

_RESIZED = {96: 112}
"""Sides that original copies are resized to before they are cropped back; others by a quarter."""


PUBLISHED = {"heads.learning_rate": 1e-4, "heads.batch_size": 256, "heads.n_repeats": 3}
"""What the papers of IIC and PICA say."""


def start_config(image_set: ImageSet, n_clusters: int, device: str) -> RunConfig:
    """DCDC's own settings for such images, from which a method departs.

    On a GPU as the paper has it: ResNet-34 on Sobel edges, both heads in turn from random weights,
    and over that what the methods' own papers say. Tiny images, and all on a CPU, as
    `suggest`: the small backbone, features first by the over-clustering head, K-Means to start the
    cluster head.
    """
    suggested = suggest_for(image_set, n_clusters, device)
    if image_set.side <= TINY or not has_gpu(device):
        return suggested
    side, paper = image_set.side, preset("cifar10-paper")
    augment = paper.augment if image_set.channels == 3 else suggested.augment
    config = replace(
        paper,
        n_clusters=n_clusters,
        data=replace(paper.data, size=side),
        network=replace(paper.network, mean=None, std=None),
        augment=replace(augment, resize_to=_RESIZED.get(side, side * 5 // 4)),
    )
    config = with_values(config, PUBLISHED)
    batch_size = min(heads_of(config).batch_size or image_set.n_images, image_set.n_images)
    return with_values(config, {"heads.batch_size": batch_size})


def at_least_seven_steps(batch_size: int, image_set: ImageSet) -> int:
    """A batch of this many images, or of fewer where an epoch would have too few steps."""
    return max(2, min(batch_size, image_set.n_images // 7))


def cluster_by_run(
    recipe: str | RunConfig | None,
    image_set: Data,
    seed: int,
    context: Context,
    settings: Mapping[str, Any],
    changes: Sequence[str],
) -> Clustering:
    """`settings` over `recipe`, but for those that are None, and `changes`, `section.key=value`,
    over both; without a recipe, that of the images. In the context's folder, a run folder, what was
    begun with them goes on."""
    given = {key: value for key, value in settings.items() if value is not None}
    given |= {"train.seed": seed, "train.device": context.device}
    overrides = Overrides(given | parse_settings(changes), recipe)
    config = prepare_run(image_set, overrides).config  # refuses before there is a folder
    if config.outliers:
        raise InputError(
            "is not for a comparison: methods are compared by their answers for every image",
            parameter="outliers",
            value=config.outliers,
        )
    run_folder, resume = None, False
    if context.folder is not None:
        run_folder, resume = begin_or_go_on(context.folder)
    result = run(config, image_set, folder=run_folder, resume=resume, observer=context.observer)
    return Clustering(
        result.assigned.assignments,
        probabilities=result.assigned.probabilities,
        features=result.model.features(image_set),
        network=result.model.network,
    )


def begin_or_go_on(folder: Path) -> tuple[RunFolder, bool]:
    """The run folder, and whether a run was begun there."""
    if RunFolder(folder).config_file.exists():
        return RunFolder.open(folder), True
    return RunFolder.create(folder), False
