"""DCDC as one of the methods.

Dang, Deng, Yang and Huang, Doubly Contrastive Deep Clustering, 2021. A network assigns images and
perturbed copies of them; contrast between rows says that an image and its copies belong together,
contrast between columns that a cluster keeps to its images.

Settings: the preset of a set that has one and that this machine can run, else what `dcdc fit`
would choose by the images; `changes` are `section.key=value`, as its --set.
"""

from dcdc.config import RunConfig
from dcdc.config_for_images import has_gpu, suggest_for
from dcdc.data import ImageSet
from dcdc.methods.by_run import cluster_by_run
from dcdc.methods.context import Clustering, Context
from dcdc.presets import PRESETS, for_gpu, preset


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    recipe: str | None = None,
    epochs: int | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    """Goes on with the run in the context's folder, where there is one."""
    config = choose_recipe(image_set, n_clusters, context.device, recipe)
    settings = {"n_clusters": n_clusters, "train.epochs": epochs}
    return cluster_by_run(config, image_set, seed, context, settings, changes)


def choose_recipe(
    image_set: ImageSet, n_clusters: int, device: str, recipe: str | None
) -> RunConfig:
    if recipe is not None:
        return preset(recipe)
    own = PRESETS.get(image_set.known_as)
    if own is not None and (has_gpu(device) or not for_gpu(own)):
        return own
    return suggest_for(image_set, n_clusters, device)
