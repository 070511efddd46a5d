"""DCCM: a graph of pairs, sure answers as labels, and features that know their own image's maps.

Wu, Long, Wang, Qian, Li, Lin and Zha, Deep comprehensive correlation mining for image clustering,
2019. Pairs whose assignments have a cosine of 0.95 or more are joined in a graph, all others are
not, and copies of the images learn the graph by cross-entropy; an answer with a share of 0.9 or
more is the label of its image's copies; and the mutual information of an image's features and its
maps, or those of an image that is joined with it, is made large, by a discriminator that tells them
from the maps of others.

As there: thresholds, the weights 1, 5 and 0.05, copies, RMSprop at 1e-4, and on a GPU 2,000 passes
over the images, 200 epochs of ten. Not as there: the discriminator is a product of maps and
features; answers of all images before each pass, the batch and the network's start are as DAC's
here; the last epoch answers, where the authors choose one by labels. Tiny images, and all on a CPU,
are as DAC's, but that the head starts by K-Means at first, too, the rate falls from 1e-3, and a
label takes a share of 0.99: chosen on digits, with labels (docs/log.md).
"""

from dcdc.data import ImageSet
from dcdc.methods.by_relations import K_MEANS_AT, cluster_by_relations
from dcdc.methods.context import Clustering, Context

PUBLISHED = {
    "epochs": 2_000,
    "learning_rate": 1e-4,
    "upper": 0.95,
    "lower": 0.95,
    "logit_norm": True,
}
SMALL = {
    "logit_norm": False,
    "k_means_at": (0.0, *K_MEANS_AT),
    "learning_rate": 1e-3,
    "label_threshold": 0.99,
    "schedule": "cosine",
}


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    label_weight: float = 5.0,
    information_weight: float = 0.05,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    given = {
        "label_weight": label_weight,
        "information_weight": information_weight,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
    }
    return cluster_by_relations(
        PUBLISHED, SMALL, image_set, n_clusters, seed, context, given, changes
    )
