"""DCDC as one of the methods.

Dang, Deng, Yang and Huang, Doubly Contrastive Deep Clustering, 2021. A network assigns images and
perturbed copies of them; contrast between rows says that an image and its copies belong together,
contrast between columns that a cluster keeps to its images.

Settings: the preset of a set that has one and that this machine can run, else what `dcdc fit`
would choose by the images; `changes` are `section.key=value`, as its --set.
"""

from dcdc.data import ImageSet
from dcdc.methods.by_run import cluster_by_run
from dcdc.methods.context import Clustering, Context


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
    settings = {"n_clusters": n_clusters, "heads.epochs": epochs}
    return cluster_by_run(recipe, image_set, seed, context, settings, changes)
