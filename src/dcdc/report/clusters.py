"""What there is to say of each cluster."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcdc.metrics.matching import pair_labels
from dcdc.metrics.scores import cluster_purity
from dcdc.report.facts import RunFacts


@dataclass(frozen=True, eq=False)
class ClusterFacts:
    number: int
    members: NDArray[np.int64]  # positions of its images, the most confident first
    mean_confidence: float  # 0 for an empty cluster
    purity: float | None = None
    main_class: str | None = None

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def n_of_main_class(self) -> int:
        return round((self.purity or 0.0) * self.size)


def describe_clusters(facts: RunFacts) -> list[ClusterFacts]:
    """Every cluster, the empty ones too; largest first, equal sizes by number."""
    order = np.lexsort((-facts.confidence, facts.assignments))
    bounds = np.searchsorted(facts.assignments[order], np.arange(1, facts.n_clusters))
    purity: dict[int, float] = {}
    main_class: dict[int, str] = {}
    if facts.targets is not None:
        purity = cluster_purity(facts.targets, facts.assignments)
        pairs = pair_labels(facts.targets, facts.assignments)
        winners = pairs.table.argmax(axis=0)
        main_class = {
            cluster: pairs.classes[row]
            for cluster, row in zip(pairs.clusters, winners, strict=True)
        }
    clusters = [
        ClusterFacts(
            number=number,
            members=members,
            mean_confidence=float(facts.confidence[members].mean()) if len(members) else 0.0,
            purity=purity.get(number),
            main_class=main_class.get(number),
        )
        for number, members in enumerate(np.split(order, bounds))
    ]
    return sorted(clusters, key=lambda cluster: (-cluster.size, cluster.number))
