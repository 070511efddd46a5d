"""Methods that `dcdc fit` scores beside its own answer: `--baseline k-means`."""

from typing import TYPE_CHECKING

from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.methods import Method
    from dcdc.prepare.prepare_run import Prepared
    from dcdc.run import Baseline


def methods_beside(names: list[str]) -> "list[Method]":
    """Refuses an unknown one before anything is read."""
    if not names:
        return []
    from dcdc.methods import find_method

    return [find_method(name) for name in names]


def require_fitting(methods: "list[Method]", prepared: "Prepared") -> None:
    """Refuses, before minutes go into training, what cannot group features."""
    from dcdc.data import VectorSet
    from dcdc.prepare.resolve import has_stored_features

    for method in methods if has_stored_features(prepared.config.network) else ():
        if VectorSet not in method.kinds():
            raise InputError(
                f"--baseline {method.name} groups images, and this run groups features: choose "
                "k-means, gmm, sc, ac, temi or turtle, or --backbone scratch"
            )


def baselines_of(methods: "list[Method]") -> dict[str, "Baseline"]:
    """By their titles."""

    def answer_of(method: "Method") -> "Baseline":
        return lambda images, n_clusters, seed: method.cluster(images, n_clusters, seed).assignments

    return {method.title: answer_of(method) for method in methods}
