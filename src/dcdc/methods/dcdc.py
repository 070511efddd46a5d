"""DCDC as one of the methods.

Dang, Deng, Yang and Huang, Doubly Contrastive Deep Clustering, 2021. A network assigns images and
perturbed copies of them; contrast between rows says that an image and its copies belong together,
contrast between columns that a cluster keeps to its images. Of feature vectors, an image and one of
its nearest neighbours take the place of two copies.

Settings: the preset of a set that has one and that this machine can run, else what `dcdc fit`
would choose by the images, or by the vectors; `changes` are `section.key=value`, as its --set. Of
images it is always trained from scratch: pretrained weights have a table of their own.
"""

from collections.abc import Sequence
from typing import Any

from dcdc.config import parse_settings
from dcdc.data import Data, ImageSet
from dcdc.errors import InputError
from dcdc.methods.by_run import cluster_by_run
from dcdc.methods.context import Clustering, Context
from dcdc.networks import find_backbone
from dcdc.prepare.pretrained_choice import SCRATCH


def cluster(
    image_set: Data,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    recipe: str | None = None,
    epochs: int | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    """Goes on with the run in the context's folder, where there is one."""
    settings: dict[str, Any] = {"n_clusters": n_clusters, "epochs": epochs}
    if isinstance(image_set, ImageSet):
        require_from_scratch(changes)
        settings["network.backbone"] = SCRATCH
    return cluster_by_run(recipe, image_set, seed, context, settings, changes)


def require_from_scratch(changes: Sequence[str]) -> None:
    name = parse_settings(changes).get("network.backbone", SCRATCH)
    if name != SCRATCH and find_backbone(name).pretrained is not None:
        raise InputError(
            "is pretrained, and such figures are never shown beside those from scratch",
            parameter="network.backbone",
            value=name,
            remedy="compare methods on its features by {backbone}",
        )
