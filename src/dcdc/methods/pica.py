"""PICA: the partition of which the network can be most confident.

Huang, Gong and Zhu, Deep semantic clustering by partition confidence maximisation, 2020. Every
cluster is the column of its assignments over a batch; cosines between the columns of the originals
and of their perturbed copies make a matrix whose cross-entropy against the diagonal says how apart
the clusters are, and log K minus the entropy of their sizes keeps them filled.

That is DCDC's class view at temperature 1 plus twice its balance term, without the sample view: its
engine, with other weights. On a GPU the learning rate, batch and copies of the paper and 200
epochs, as it has; backbone, perturbations and 70 over-clusters are DCDC's, which follows it there.
Tiny images, and all on a CPU: DCDC's settings for them, but for the batch, since columns say little
over few images.
"""

from dcdc.data import ImageSet
from dcdc.methods.by_run import at_least_seven_steps, cluster_by_run, start_config
from dcdc.methods.context import Clustering, Context
from dcdc.phases.heads import heads_of


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    balance_weight: float = 2.0,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    config = start_config(image_set, n_clusters, context.device)
    large = max(heads_of(config).batch_size or 0, at_least_seven_steps(256, image_set))
    settings = {
        "heads.temperature": 1.0,
        "heads.sample_weight": 0.0,
        "heads.class_weight": 1.0,
        "heads.balance_weight": balance_weight,
        "heads.epochs": epochs,
        "heads.batch_size": batch_size or large,
        "heads.learning_rate": learning_rate,
    }
    return cluster_by_run(config, image_set, seed, context, settings, changes)
