"""Agreement of two partitions that needs no matching: NMI and ARI, by scikit-learn."""

from numpy.typing import ArrayLike
from sklearn import metrics as sklearn_metrics

from dcdc.metrics.labels import pair_labels


def normalized_mutual_info(targets: ArrayLike, assignments: ArrayLike) -> float:
    """NMI: mutual information over the arithmetic mean of the two entropies."""
    pairs = pair_labels(targets, assignments)
    return float(
        sklearn_metrics.normalized_mutual_info_score(
            pairs.class_codes, pairs.cluster_codes, average_method="arithmetic"
        )
    )


def adjusted_rand_index(targets: ArrayLike, assignments: ArrayLike) -> float:
    """ARI: agreement over pairs of images, 0 by chance, 1 when the partitions are the same."""
    pairs = pair_labels(targets, assignments)
    return float(sklearn_metrics.adjusted_rand_score(pairs.class_codes, pairs.cluster_codes))
