"""What the values of a config must be, alone and beside each other.

They come by their `section.key`, so that the rules stand below the dataclasses that ask for them.
"""

from collections.abc import Mapping
from typing import Any

from dcdc.errors import InputError

Values = Mapping[str, Any]
Rule = tuple[bool, str, Any, str]
"""Whether it holds, for which key, the value there, and what that must be."""


def check_values(values: Values) -> None:
    """Refuses the first value that breaks a rule; every key of a config must be there."""
    for holds, key, value, wanted in _rules(values):
        if not holds:
            raise InputError(f"{key} = {value} must be {wanted}")


def _rules(values: Values) -> list[Rule]:
    n_clusters, size = values["n_clusters"], values["data.size"]
    over_clusters, sub_heads = values["network.over_clusters"], values["network.sub_heads"]
    weights = tuple(values[f"loss.{term}_weight"] for term in ("sample", "class", "balance"))
    views = weights[:2]
    epochs, alone, seed = (
        values[f"train.{name}"] for name in ("epochs", "over_clustering_first", "seed")
    )
    return [
        (
            n_clusters is None or n_clusters >= 2,
            "n_clusters",
            n_clusters,
            "at least 2 (--clusters)",
        ),
        (size is None or 8 <= size <= 512, "data.size", size, "8 to 512 pixels"),
        (
            over_clusters == 0 or over_clusters >= 2,
            "network.over_clusters",
            over_clusters,
            "0 (no over-clustering head) or at least 2",
        ),
        _at_least(1, "network.sub_heads", values),
        (
            sub_heads == 1 or values["self_label.epochs"] == 0,
            "network.sub_heads",
            sub_heads,
            "1 where self_label.epochs is above 0",
        ),
        _above_zero("loss.temperature", values),
        (min(weights) >= 0, "loss.*_weight", weights, "0 or above"),
        (sum(views) > 0, "loss.*_weight", views, "above 0 for at least one view"),
        _at_least(1, "train.epochs", values, flag="--epochs"),
        _at_least(2, "train.batch_size", values, flag="--batch-size"),
        _at_least(1, "train.n_repeats", values),
        (
            0 <= alone < epochs,
            "train.over_clustering_first",
            alone,
            f"a share of the epochs, or fewer than all {epochs}",
        ),
        (
            alone == 0 or over_clusters > 0,
            "train.over_clustering_first",
            alone,
            "0 where network.over_clusters is 0",
        ),
        _above_zero("train.learning_rate", values),
        _zero_or_above("train.neighbours", values),
        *_phase_rules(values),
        _zero_or_above("train.warmup_epochs", values),
        _at_least(1, "train.evaluate_every", values),
        _at_least(1, "train.checkpoint_every", values),
        _at_least(1, "train.keep_checkpoints", values),
        _zero_or_above("train.threads", values),
        (0 <= seed < 2**63, "train.seed", seed, "0 to 2^63 - 1 (--seed)"),
    ]


def _phase_rules(values: Values) -> list[Rule]:
    threshold, momentum = values["self_label.threshold"], values["instance.momentum"]
    copies = values["instance.copies"]
    rules: list[Rule] = []
    for phase in ("instance", "self_label"):
        rules += [
            _zero_or_above(f"{phase}.epochs", values),
            _at_least(2, f"{phase}.batch_size", values),
            _above_zero(f"{phase}.learning_rate", values),
        ]
    return [
        *rules,
        _at_least(2, "instance.copies", values),
        (
            copies == 2 or values["instance.kind"] != "prediction",
            "instance.copies",
            copies,
            "2 where instance.kind is prediction",
        ),
        _above_zero("instance.temperature", values),
        (0 <= momentum < 1, "instance.momentum", momentum, "from 0 to below 1"),
        _at_least(2, "instance.projection", values),
        _zero_or_above("instance.warmup_epochs", values),
        (0 <= threshold < 1, "self_label.threshold", threshold, "from 0 to below 1"),
    ]


def _at_least(least: int, key: str, values: Values, flag: str = "") -> Rule:
    value, wanted = values[key], f"at least {least} ({flag})" if flag else f"at least {least}"
    return value is None or value >= least, key, value, wanted


def _above_zero(key: str, values: Values) -> Rule:
    return values[key] > 0, key, values[key], "above 0"


def _zero_or_above(key: str, values: Values) -> Rule:
    return values[key] >= 0, key, values[key], "0 or above"
