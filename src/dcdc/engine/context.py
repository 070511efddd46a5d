"""What a phase may use while it trains: the model, the images, its seed and its own state."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from dcdc.augment import PerturbedCopy, StrongCopy
from dcdc.data.store import Store
from dcdc.engine.observer import Observer
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses.sizes import EQUAL, Sizes
from dcdc.networks import ClusteringNetwork
from dcdc.runtime.processes import Processes


@dataclass
class TrainingContext:
    model: TrainedModel
    store: Store
    seed: int
    perturbed_copy: Callable[[int], PerturbedCopy]
    """That many perturbed copies of each image, as the config's `augment` has them."""
    observer: Observer
    sizes: Sizes = EQUAL
    """Of the clusters, as the config has them."""
    outliers: bool = False
    """Whether some images may belong to none of them."""
    state: dict[str, Tensor] = field(default_factory=dict)
    """What the running phase keeps, by name; emptied when the next one begins."""
    made: dict[str, Tensor] = field(default_factory=dict)
    """What the running phase can make again, by name, and so is in no checkpoint."""
    taught: Taught | None = None
    """What people said of the images, where a run is to learn from it."""

    def strong_copy(self, n_repeats: int) -> StrongCopy:
        """Mirrored where the config's perturbed copies are."""
        return StrongCopy(n_repeats=n_repeats, flip=self.perturbed_copy(1).flip)

    @property
    def network(self) -> ClusteringNetwork:
        return self.model.network

    @property
    def processes(self) -> Processes:
        return self.model.processes
