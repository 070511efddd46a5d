"""Where a model's features come from, in words: figures with pretrained weights are marked by them.

`backbone` is what a run's metrics.json holds under that name: `name`, and of pretrained weights
`frozen` and `pretrained`, as dcdc.networks.Pretrained has it.
"""

from collections.abc import Mapping
from typing import Any

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
