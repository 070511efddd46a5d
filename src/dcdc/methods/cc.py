"""CC: images and clusters, both learnt by contrast between two perturbed copies.

Li, Hu, Liu, Peng, Zhou and Peng, Contrastive clustering, 2021. The rows of a batch are images: two
copies of one are alike, those of others are not. The columns of their assignments are clusters, and
are told apart in the same way. The entropy of the clusters' sizes keeps them filled.

DCDC's engine, by a phase of its own. As in the paper: NT-Xent over rows of 128 numbers at .5 and
over columns at 1, the entropies of both copies at weight 1, batches of 256, Adam at 3e-4 and, of
photos on a GPU, 1,000 epochs. Not as there: images at their own size instead of 224 pixels, so a
ResNet-18 for small images instead of a ResNet-34; copies as our recipe for such images has them,
without blur; one linear layer in the cluster head instead of two. Tiny images, and all on a CPU:
the small backbone, batches of 128, a higher rate, 30 epochs of images alone and, from K-Means on
their features, 20 of both: chosen on digits, with labels, where a head that starts at random stays
below the control (docs/log.md).
"""

from dataclasses import replace

from dcdc.config import NetworkConfig, RunConfig, TrainConfig
from dcdc.data import ImageSet
from dcdc.methods.by_run import at_least_seven_steps, cluster_by_run
from dcdc.methods.context import Clustering, Context
from dcdc.phases.contrast import Contrast
from dcdc.phases.contrastive_clustering import ContrastiveClustering
from dcdc.prepare.suggestions import TINY, suggest_for


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    temperature: float | None = None,
    cluster_temperature: float | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    """`epochs` are those of both contrasts together."""
    config = recipe(image_set, n_clusters, context.device)
    given = {
        "temperature": temperature,
        "cluster_temperature": cluster_temperature,
        "epochs": epochs,
        "learning_rate": learning_rate,
    }
    settings = {f"{ContrastiveClustering.kind}.{key}": value for key, value in given.items()}
    settings |= {f"{phase.kind}.batch_size": batch_size for phase in config.phases}
    return cluster_by_run(config, image_set, seed, context, settings, changes)


def recipe(image_set: ImageSet, n_clusters: int, device: str) -> RunConfig:
    suggested = suggest_for(image_set, n_clusters, device)
    if any(isinstance(each, Contrast) for each in suggested.phases):
        batch_size = at_least_seven_steps(256, image_set)
        return replace(
            suggested,
            network=replace(suggested.network, over_clusters=0),
            augment=replace(suggested.augment, resize_to=0),
            phases=(ContrastiveClustering(epochs=1_000, batch_size=batch_size),),
        )
    batch_size = at_least_seven_steps(128, image_set)
    both = ContrastiveClustering(
        epochs=20, batch_size=batch_size, learning_rate=1e-3, initialisation="spherical-k-means"
    )
    return RunConfig(
        n_clusters=n_clusters,
        network=NetworkConfig(backbone="small", over_clusters=0),
        augment=suggested.augment,
        phases=(Contrast(epochs=30, batch_size=batch_size), both),
        train=TrainConfig(threads=1 if image_set.side <= TINY else 0, evaluate_every=5),
    )
