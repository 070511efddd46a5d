"""Python's entry points: `DCDC(n_clusters=10).fit_predict(images)`, and `load("runs/photos")`."""

from dcdc.estimator.clusterer import DCDC
from dcdc.estimator.loading import from_pretrained, load, regroup

__all__ = ["DCDC", "from_pretrained", "load", "regroup"]
