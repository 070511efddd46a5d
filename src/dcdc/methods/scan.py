"""SCAN: an image and its nearest neighbours by learnt features belong to one cluster.

Van Gansbeke, Vandenhende, Georgoulis, Proesmans and Van Gool, SCAN: Learning to classify images
without labels, 2020. Features by instance contrast first (SimCLR). Then a linear head, and all
under it, is taught to give an image and one of its neighbours the same sure cluster, while the
entropy of the mean keeps clusters filled. At the end what it is sure of are labels for strong
copies.

DCDC's engine with another loss. Photos on a GPU as in the paper: 20 neighbours, an entropy weight
of 5, 50 epochs in batches of 128, then 200 epochs in batches of 1,000 with labels above .99, Adam
at 1e-4 all along, strong copies by RandAugment and Cutout. Features are those of our own recipe for
such images, by Adam at a temperature of .2, some 200 epochs where the paper has 500 by SGD at .1;
and there is no weight decay. Tiny images, and all on a CPU: the small backbone, copies as DCDC has
them, higher rates and fewer epochs, chosen on digits.
"""

from dataclasses import replace

from dcdc.config import NetworkConfig, RunConfig, TrainConfig
from dcdc.data import ImageSet
from dcdc.methods.by_run import at_least_seven_steps, cluster_by_run
from dcdc.methods.context import Clustering, Context
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel
from dcdc.prepare.suggestions import TINY, suggest_for


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_neighbours: int | None = None,
    entropy_weight: float = 5.0,
    threshold: float | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    clustering_epochs: int | None = None,
    self_label_epochs: int | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    """`epochs` and `batch_size` are those of the features."""
    settings = {
        "contrast.epochs": epochs,
        "contrast.batch_size": batch_size,
        "heads.epochs": clustering_epochs,
        "heads.neighbours": n_neighbours,
        "heads.balance_weight": entropy_weight,
        "self_label.epochs": self_label_epochs,
        "self_label.threshold": threshold,
    }
    config = recipe(image_set, n_clusters, context.device)
    return cluster_by_run(config, image_set, seed, context, settings, changes)


def recipe(image_set: ImageSet, n_clusters: int, device: str) -> RunConfig:
    suggested = suggest_for(image_set, n_clusters, device)
    features = [phase for phase in suggested.phases if isinstance(phase, Contrast)]
    # Neighbours that are as many as a fifth of a cluster may well be of another.
    neighbours = min(20, max(1, image_set.n_images // (5 * n_clusters)))
    if not features:
        return _small(suggested, image_set, neighbours)
    heads = Heads(
        epochs=50,
        batch_size=at_least_seven_steps(128, image_set),
        n_repeats=1,
        neighbours=neighbours,
        copies="strong",
        loss="scan",
        learning_rate=1e-4,
    )
    self_labels = SelfLabel(
        epochs=200,
        batch_size=at_least_seven_steps(1000, image_set),
        threshold=0.99,
        copies="strong",
        learning_rate=1e-4,
        schedule="constant",
    )
    return replace(
        suggested,
        network=replace(suggested.network, over_clusters=0),
        augment=replace(suggested.augment, resize_to=0),  # strong copies see the whole image
        phases=(features[0], heads, self_labels),
    )


def _small(suggested: RunConfig, image_set: ImageSet, neighbours: int) -> RunConfig:
    batch_size = at_least_seven_steps(256, image_set)
    return RunConfig(
        n_clusters=suggested.n_clusters,
        network=NetworkConfig(backbone="small", over_clusters=0),
        augment=suggested.augment,
        phases=(
            Contrast(epochs=30, batch_size=batch_size),
            Heads(
                epochs=20,
                batch_size=batch_size,
                n_repeats=1,
                neighbours=neighbours,
                loss="scan",
            ),
            SelfLabel(epochs=8, threshold=0.9, learning_rate=1e-3),
        ),
        train=TrainConfig(threads=1 if image_set.side <= TINY else 0, evaluate_every=5),
    )
