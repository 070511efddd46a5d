"""Where a model's figures come from, in words: those with pretrained weights, and those of models
that people taught, are marked by them.

`backbone` is what a run's metrics.json holds under that name: `name`, and of pretrained weights
`frozen` and `pretrained`, as dcdc.networks.Pretrained has it.
"""

from collections.abc import Mapping
from typing import Any

from dcdc.printable import counted

VECTORS = "vectors"
"""As dcdc.networks.feature_vectors has it, which imports torch."""
_LABELS = {True: "with labels", False: "without labels", None: "perhaps with labels"}


def is_pretrained(backbone: Mapping[str, Any] | None) -> bool:
    return bool(backbone and backbone.get("pretrained"))


def of_vectors(backbone: Mapping[str, Any] | None) -> bool:
    return bool(backbone) and (backbone or {}).get("name") == VECTORS


def mark(backbone: Mapping[str, Any] | None) -> str | None:
    """One line wherever scores are shown; None: the network saw these images alone."""
    if of_vectors(backbone):
        return "on given feature vectors: the network that made them may have learnt from labels"
    if not backbone or not backbone.get("pretrained"):
        return None
    told = backbone["pretrained"]
    return f"features of {told['name']}, {manner(backbone)}: {weights(backbone)}"


def origin(metrics: Mapping[str, Any] | None) -> str | None:
    """One line wherever the scores of a run's metrics.json are shown; None: they come from these
    images alone."""
    metrics = metrics or {}
    parts = (mark(metrics.get("backbone")), taught_by_people(metrics.get("refined")))
    return "; ".join(filter(None, parts)) or None


def taught_by_people(refined: Mapping[str, Any] | None) -> str | None:
    """Of a run that learnt from corrections, as its metrics.json has them under that name."""
    if not refined:
        return None
    n_edits = sum(count for kind, count in refined["edits"].items() if kind != "name")
    return f"learnt from {counted(n_edits, 'correction')} that people made"


def weights(backbone: Mapping[str, Any]) -> str:
    """`weights trained on ImageNet-1k with labels (Apache-2.0)`."""
    told = backbone["pretrained"]
    licence = told["licence"]
    known = f"licence {licence}" if licence == "unknown" else licence
    return f"weights trained on {trained_on(backbone)} ({known})"


def trained_on(backbone: Mapping[str, Any]) -> str:
    told = backbone["pretrained"]
    data = told["trained_on"]
    return f"{'unknown data' if data == 'unknown' else data} {_LABELS[told['uses_labels']]}"


def manner(backbone: Mapping[str, Any]) -> str:
    return "frozen" if backbone.get("frozen") else "fine-tuned"


def short_name(backbone: Mapping[str, Any] | None) -> str:
    """For a column of a table."""
    if not backbone:
        return ""
    if of_vectors(backbone):
        return "given vectors"
    if not backbone.get("pretrained"):
        return f"{backbone['name']}, from scratch"
    return f"{backbone['pretrained']['name']}, {manner(backbone)}"
