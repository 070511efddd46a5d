"""DAC: pairs of images that look alike to the network learn to have one cluster, others not.

Chang, Wang, Meng, Xiang and Pan, Deep adaptive image clustering, 2017. Assignments at length 1 are
compared by their product. Pairs above an upper threshold belong together, pairs below a lower one
apart, those between teach nothing; copies of the images learn these relations by cross-entropy,
and each its own earlier assignment. Both thresholds approach each other until they meet, so that
sure pairs come first and all in the end.

As there: the thresholds of 0.99 and 0.8, copies, RMSprop at 1e-3, the answer by arg-max, and on a
GPU 500 passes over the images and a batch norm and a ReLU before the softmax. Not as there: answers
are taken of all images before a pass, where the authors took those of 1,000 images before ten
passes over them; batches of 128 on a GPU; a network of six convolutions. Tiny images, and all on a
CPU: a smaller network, logits that are spread once, at the start, batches of 32, some 2,700 steps,
grey images are not mirrored, a lower threshold of 0.9, no weight on the earlier assignment, and the
head starts again by K-Means on the features after each quarter of the epochs. Chosen on digits,
with labels (docs/log.md).
"""

from dcdc.data import ImageSet
from dcdc.methods.by_relations import K_MEANS_AT, cluster_by_relations
from dcdc.methods.context import Clustering, Context

PUBLISHED = {
    "epochs": 500,
    "learning_rate": 1e-3,
    "threshold": "band",
    "upper": 0.99,
    "lower": 0.8,
    "earlier_weight": 1.0,
    "logit_norm": True,
}
SMALL = {"logit_norm": False, "k_means_at": K_MEANS_AT, "earlier_weight": 0.0, "lower": 0.9}


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    upper: float | None = None,
    lower: float | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    given = {
        "upper": upper,
        "lower": lower,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
    }
    return cluster_by_relations(
        PUBLISHED, SMALL, image_set, n_clusters, seed, context, given, changes
    )
