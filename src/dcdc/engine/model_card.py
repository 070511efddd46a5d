"""The model card: what a model is, for people, under the front matter that the hub reads."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

_FRONT_MATTER = """\
---
library_name: dcdc
pipeline_tag: image-feature-extraction
tags:
- image-clustering
- deep-clustering
- contrastive-learning
- unsupervised
---
"""

_USE = """\
## Use and limits

The model sorts images like those it was trained on into {n_clusters} clusters. A cluster is what
the network found alike: no class that somebody defined, and its number means nothing. An image of
another kind gets a cluster and a confidence all the same. Look at the clusters before you name
them, and score them against labels where a decision hangs on them."""


def model_card(
    title: str,
    loading: str,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any] | None = None,
    names: Mapping[int, str] | None = None,
) -> str:
    """`loading` is the line of Python that opens the model; metrics as in a run's metrics.json."""
    n_clusters, size = config["n_clusters"], config["data"]["size"]
    channels = len(config["network"]["mean"])
    parts = [
        f"{_FRONT_MATTER}\n# {_plain(title)}",
        f"Groups images of {size} x {size} pixels, {channels} channel(s), into {n_clusters} "
        "clusters, found without labels by Doubly Contrastive Deep Clustering (dcdc).",
        _data(config, metrics),
        _scores(metrics),
        _settings(config),
        _names(names or {}),
        _USE.format(n_clusters=n_clusters),
        _how_to_load(loading, size, channels),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def public_source(source: str) -> str:
    """A source's name without the folders that lead to it, which concern nobody else."""
    benchmark, colon, _ = source.partition(":")
    if colon and len(benchmark) > 1 and "/" not in benchmark:
        return benchmark
    return PurePath(source).name


def _data(config: Mapping[str, Any], metrics: Mapping[str, Any] | None) -> str:
    source = public_source(config["data"]["source"]) or "arrays in memory"
    counted = f", {metrics['n_images']:,} images" if metrics and "n_images" in metrics else ""
    return f"## Data\n\n{_plain(source)}{counted}. No label took part in the training."


def _scores(metrics: Mapping[str, Any] | None) -> str:
    if not metrics or "scores" not in metrics:
        return ""
    lines = ["## Scores", ""]
    if metrics["scores"]:
        rows = {"dcdc": metrics["scores"], **metrics.get("baselines", {})}
        figures = [
            (name, *(f"{scores[key]:.3f}" for key in ("acc", "nmi", "ari")))
            for name, scores in rows.items()
        ]
        lines += _table(("", "ACC", "NMI", "ARI"), figures)
        lines += ["", "On the images it was trained on, against their classes, last epoch."]
    else:
        lines += ["Not scored: the images had no classes to hold against."]
    health = metrics.get("health")
    if health:
        lines += [
            "",
            f"{health['active_clusters']} clusters in use, mean confidence "
            f"{health['mean_confidence']:.2f}.",
        ]
    return "\n".join(lines)


def _settings(config: Mapping[str, Any]) -> str:
    network = config["network"]
    phases = [phase for phase in config["phases"] if phase["epochs"]]
    rows = {
        "backbone": network["backbone"] + (", on Sobel edges" if network["sobel"] else ""),
        "clusters": config["n_clusters"],
        "over-clusters": network["over_clusters"],
        "phases": ", ".join(
            f"{phase['kind']}, {phase['epochs']} epochs"
            + (f" of batches of {phase['batch_size']}" if phase["batch_size"] else "")
            for phase in phases
        ),
        "seed": config["train"]["seed"],
    }
    table = _table(("setting", "value"), [(key, str(value)) for key, value in rows.items()])
    return "\n".join(["## Settings", "", *table, "", "All of them are in `config.json`."])


def _names(names: Mapping[int, str]) -> str:
    if not names:
        return ""
    rows = [(str(cluster), name) for cluster, name in sorted(names.items())]
    return "\n".join(["## Clusters", "", *_table(("cluster", "name"), rows)])


def _how_to_load(loading: str, size: int, channels: int) -> str:
    return f"""\
## How to load

```python
import dcdc

model = {loading}
model.predict(images)  # uint8, N x {size} x {size} x {channels}; other sizes are brought to it
```"""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in cells]


def _plain(text: str) -> str:
    """A person's words as one cell or one heading."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
