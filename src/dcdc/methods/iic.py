"""IIC: clusters that say as much as possible about the same image seen another way.

Ji, Henriques and Vedaldi, Invariant Information Clustering for unsupervised image classification
and segmentation, 2019. The joint distribution of an image's cluster and its perturbed copy's,
averaged over the batch, is made as informative as it can be: sure, agreeing and even all at once.
Five sub-heads of each kind train side by side, in turn with over-clustering ones; the cluster head
with the lowest loss over the last epoch answers.

DCDC's engine with another loss. On a GPU: five sub-heads, three copies and the learning rate of the
paper, 70 over-clusters as its experiments on CIFAR-10 and STL-10, batches of 256 near its own of
220, and 200 epochs, as DCDC has, where its authors' code has 2,000. Tiny images, and all on a CPU:
DCDC's settings for them, but for the start: sub-heads that all start from K-Means hardly differ.
"""

from dcdc.data import ImageSet
from dcdc.methods.by_run import cluster_by_run, start_config
from dcdc.methods.context import Clustering, Context


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    sub_heads: int = 5,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    settings = {
        "heads.loss": "iic",
        "network.sub_heads": sub_heads,
        "heads.initialisation": "random",
        "heads.epochs": epochs,
        "heads.batch_size": batch_size,
        "heads.learning_rate": learning_rate,
    }
    config = start_config(image_set, n_clusters, context.device)
    return cluster_by_run(config, image_set, seed, context, settings, changes)
