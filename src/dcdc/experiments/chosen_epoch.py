"""Which epoch of a history a figure is taken from: the last, by the training loss, by labels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

METRICS = ("nmi", "acc", "ari")
"""In the paper's order."""
LAST = "last"
CRITERIA = {
    LAST: "last epoch",
    "smallest_loss": "smallest loss",
    "by_labels": "chosen by labels",
}
CRITERION_NOTE = (
    "Last epoch: the one training ended with. Smallest loss: of the evaluated epochs, the one in "
    "which the mean training loss of the cluster head (its weighted terms in history.jsonl) was "
    "smallest, the later of equals, or the last where a run ends with self-labels; no label is "
    "read. Chosen by labels: the evaluated epoch of the highest ACC, as the authors' code does it "
    "(the paper does not say which epoch it reports); nobody without the labels could have chosen "
    "it."
)
_HEAD = "cluster_head/"
_SELF_LABEL = "self_label"


@dataclass(frozen=True)
class EpochScores:
    epoch: int
    scores: Mapping[str, float]
    """By METRICS; empty where there are no labels."""


def choose(
    history: Sequence[Mapping[str, Any]], weights: Mapping[str, float]
) -> dict[str, EpochScores | None]:
    """By CRITERIA; `weights` of the loss terms, by their names in the history."""
    chosen = {
        LAST: history[-1] if history else None,
        "smallest_loss": smallest_loss(history, weights),
        "by_labels": best_by_labels(history),
    }
    return {name: None if line is None else _scores(line) for name, line in chosen.items()}


def smallest_loss(
    history: Sequence[Mapping[str, Any]], weights: Mapping[str, float]
) -> Mapping[str, Any] | None:
    """Epochs in which the cluster head rested, or that were not evaluated, do not count; a loss on
    labels of its own making says nothing of one epoch against another."""
    if history and history[-1].get("phase") == _SELF_LABEL:
        return history[-1]
    best, least = None, math.inf
    for line in history:
        loss = cluster_head_loss(line, weights)
        if is_evaluated(line) and loss is not None and loss <= least:
            best, least = line, loss
    return best


def best_by_labels(history: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The first of equals."""
    scored = (line for line in history if _number(line.get("acc")) is not None)
    return max(scored, key=lambda line: line["acc"], default=None)


def cluster_head_loss(line: Mapping[str, Any], weights: Mapping[str, float]) -> float | None:
    """As it was trained: history.jsonl holds the terms before their weights."""
    terms = [
        (weights.get(key.removeprefix(_HEAD), 0.0), _number(value))
        for key, value in line.items()
        if key.startswith(_HEAD)
    ]
    if not terms or any(value is None for _, value in terms):
        return None
    return sum(weight * value for weight, value in terms if value is not None)


def is_evaluated(line: Mapping[str, Any]) -> bool:
    return "active_clusters" in line


def _scores(line: Mapping[str, Any]) -> EpochScores:
    found = {name: _number(line.get(name)) for name in METRICS}
    return EpochScores(
        int(line["epoch"]), {name: value for name, value in found.items() if value is not None}
    )


def _number(value: Any) -> float | None:
    """A finite one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
