"""How good the answers are while training goes on: scores, and the health of the partition."""

from typing import Any

import numpy as np

from dcdc.data.store import Store
from dcdc.engine.assignment import Assigned
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import TrainingError
from dcdc.metrics import health_warnings, partition_health, score


class Evaluation:
    """Called after an epoch, it looks at every image of the store. `targets` are for scores alone.

    It keeps the answers: those after the last epoch are the run's, so nobody looks again.
    """

    def __init__(self, model: TrainedModel, store: Store, targets: np.ndarray | None) -> None:
        self.model, self.store, self.targets = model, store, targets
        self.answers: Assigned | None = None

    def __call__(self) -> dict[str, Any]:
        self.answers = self.model.assign_store(self.store)
        return self.model.processes.with_barrier(self._judged)

    def _judged(self) -> dict[str, Any]:
        if not self.model.processes.is_first:
            return {}
        assert self.answers is not None
        if not np.isfinite(self.answers.probabilities).all():
            raise TrainingError("the answers are not finite")
        health = partition_health(self.answers.probabilities)
        found = health.to_dict() | {"warnings": health_warnings(health)}
        if self.targets is None:
            return found
        return found | score(self.targets, self.answers.assignments)
