"""Whether a run's neighbours agree: the figure beside the softmax share, which flatters."""

from dataclasses import replace

from dcdc.metrics.agreement import nearest_by_features, neighbour_agreement
from dcdc.report.facts import ClusterFacts, RunFacts, RunSample

OVERSTATED = 0.1
"""The softmax share is this much above the agreement of neighbours: then far fewer images are right
than it says, in every run that was measured (docs/results.md)."""


def with_agreement(
    facts: RunFacts, clusters: list[ClusterFacts], sample: RunSample
) -> tuple[float, list[ClusterFacts]]:
    """Of the sample's images with their neighbours in it, on the whole and by cluster."""
    own = facts.assignments[sample.rows]
    found = neighbour_agreement(nearest_by_features(sample.features), own)
    of_cluster = [found[own == cluster.number] for cluster in clusters]
    told = [
        replace(cluster, agreement=float(some.mean())) if len(some) else cluster
        for cluster, some in zip(clusters, of_cluster, strict=True)
    ]
    return float(found.mean()), told
