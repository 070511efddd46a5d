"""The scikit-learn interface: `DCDC(n_clusters=10).fit_predict(images)`."""

from dcdc.estimator.clusterer import DCDC

__all__ = ["DCDC"]
