"""The scikit-learn face: `DCDC(n_clusters=10).fit_predict(images)`."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from dcdc.assembly import suggest_for
from dcdc.config import RunConfig, with_values
from dcdc.data import from_arrays
from dcdc.presets import preset
from dcdc.run import run


class DCDC(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters uint8 or float images, N x H x W, N x H x W x C or N x C x H x W.

    `preset` names a recipe; without one the settings follow from the images. `settings` lays
    `section.key` values over it, as --set does on the command line.
    """

    def __init__(
        self,
        n_clusters: int = 10,
        *,
        preset: str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        device: str = "auto",
        random_state: int = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.preset = preset
        self.epochs = epochs
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state
        self.settings = settings

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002, N803
        image_set = from_arrays(X)
        # Checks the flags alone first, so that a wrong one is named before a suggestion fails.
        self._overlay(RunConfig())
        start = (
            preset(self.preset)
            if self.preset
            else suggest_for(image_set, self.n_clusters, self.device)
        )
        result = run(self._overlay(start), image_set)
        self.model_ = result.model
        self.config_ = result.config
        self.labels_ = result.assigned.assignments
        self.n_iter_ = result.metrics["epochs"]
        self.loss_curve_ = [record["loss"] for record in result.history]
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        return self.model_.predict(X)

    def _overlay(self, config: RunConfig) -> RunConfig:
        values = {
            "n_clusters": self.n_clusters,
            "train.epochs": self.epochs,
            "train.batch_size": self.batch_size,
            "train.device": self.device,
            "train.seed": self.random_state,
        }
        given = {key: value for key, value in values.items() if value is not None}
        return with_values(config, given | (self.settings or {}))
