"""DDC, an approximation: pairs as in DAC, by a threshold that adapts, and answers that are whole.

Chang, Guo, Wang, Meng, Xiang and Pan, Deep discriminative clustering analysis, 2019. There is no
public code, and this follows what its abstract says: relations of pairs are estimated adaptively
under a constraint on all of them, representations are constrained to be indicators of a cluster,
and both go on in turn.

Ours: the threshold of a pass is the cosine above which as many pairs are as K even clusters have,
so that all pairs teach and none is left out; and an answer pays for what it lacks to be one
cluster's alone. How the authors estimate relations, and their weights, are not known. The rest is
DAC's: copies, network, RMSprop at 1e-3, 500 passes on a GPU, and its settings for tiny images and
for a CPU.
"""

from dcdc.data import ImageSet
from dcdc.methods.by_relations import K_MEANS_AT, cluster_by_relations
from dcdc.methods.context import Clustering, Context

PUBLISHED = {"epochs": 500, "learning_rate": 1e-3, "threshold": "even", "logit_norm": True}
SMALL = {"logit_norm": False, "k_means_at": K_MEANS_AT}


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    indicator_weight: float = 0.1,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    changes: tuple[str, ...] = (),
) -> Clustering:
    given = {
        "indicator_weight": indicator_weight,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
    }
    return cluster_by_relations(
        PUBLISHED, SMALL, image_set, n_clusters, seed, context, given, changes
    )
