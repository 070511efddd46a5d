"""The epochs before the cluster head begins: they are the same for every number of clusters, so a
search for the number learns features by them, and the run goes on from there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork


@dataclass(frozen=True, eq=False)
class FirstEpochs:
    epoch: int
    """How many are done."""
    tensors: Mapping[str, Tensor]
    """As a checkpoint has them."""
    history: tuple[dict[str, Any], ...]

    def weights_for(self, network: ClusteringNetwork) -> dict[str, Tensor]:
        """Those of `network`, with what these epochs have learnt in place of the drawn ones; not
        where the shape is another, of what a phase adds for each cluster."""
        weights = {}
        for name, drawn in network.state_dict().items():
            learnt = self.tensors[f"network/{name}"]
            fits = not name.startswith("parts.") or learnt.shape == drawn.shape
            is_begun = fits and not name.startswith(f"heads.{CLUSTER_HEAD}")
            weights[name] = learnt if is_begun else drawn
        return weights
