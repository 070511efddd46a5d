"""The model card: what a model is, for people, under the front matter that the hub reads."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from dcdc.metrics.provenance import (
    is_pretrained,
    manner,
    of_vectors,
    taught_by_people,
    trained_on,
    weights,
)
from dcdc.networks.feature_vectors import VECTORS
from dcdc.printable import counted

_TAGS = ("image-clustering", "deep-clustering", "contrastive-learning")
_HUB_LICENCES = ("apache-2.0", "mit", "bsd-3-clause", "cc-by-4.0", "cc-by-nc-4.0", "cc0-1.0")
"""As the hub writes those that it knows."""

_USE = """\
## Use and limits

The model sorts {what} like those it was trained on into {n_clusters} clusters. A cluster is what
the network found alike: no class that somebody defined, and its number means nothing. {one} of
another kind gets a cluster and a high share all the same. Look at the clusters before you name
them, and score them against labels where a decision hangs on them."""


def model_card(
    title: str,
    loading: str,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any] | None = None,
    names: Mapping[int, str] | None = None,
) -> str:
    """`loading` is the line of Python that opens the model; metrics as in a run's metrics.json."""
    n_clusters, has_vectors = config["n_clusters"], config["network"]["backbone"] == VECTORS
    backbone = (metrics or {}).get("backbone")
    what, one = ("vectors", "A vector") if has_vectors else ("images", "An image")
    refined = (metrics or {}).get("refined")
    without = "" if is_pretrained(backbone) or has_vectors or refined else "without labels "
    parts = [
        f"{_front_matter(backbone, was_taught=bool(refined))}\n# {_plain(title)}",
        f"Groups {_what(config)} into {n_clusters} clusters, found {without}by Doubly Contrastive "
        "Deep Clustering (dcdc).",
        _backbone(backbone),
        _data(config, metrics),
        _scores(metrics),
        _settings(config),
        _names(names or {}),
        _USE.format(n_clusters=n_clusters, what=what, one=one),
        _how_to_load(loading, config),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(backbone: Mapping[str, Any] | None, *, was_taught: bool = False) -> str:
    tags = [*_TAGS, "semi-supervised" if was_taught else "unsupervised"]
    lines = ["library_name: dcdc"]
    if of_vectors(backbone):
        lines.append("pipeline_tag: feature-extraction")
        tags.append("feature-vectors")
    else:
        lines.append("pipeline_tag: image-feature-extraction")
    if backbone and is_pretrained(backbone):
        tags += ["pretrained-backbone", f"{manner(backbone)}-backbone"]
        licence = backbone["pretrained"]["licence"].lower()
        if licence in _HUB_LICENCES:  # the folder holds these weights
            lines.append(f"license: {licence}")
        hub, _, repo = backbone["name"].partition(":")
        if hub == "hf" and repo.count("/") == 1 and not repo.startswith((".", "/", "~")):
            lines.append(f"base_model: {repo.partition('@')[0]}")
    return "\n".join(["---", *lines, "tags:", *(f"- {tag}" for tag in tags), "---", ""])


def _what(config: Mapping[str, Any]) -> str:
    if config["network"]["backbone"] == VECTORS:
        return f"feature vectors of {config['data']['n_features']} numbers"
    size, channels = config["data"]["size"], len(config["network"]["mean"])
    return f"images of {size} x {size} pixels, {channels} channel(s),"


def _backbone(backbone: Mapping[str, Any] | None) -> str:
    """Whose weights these are, where they are not of this training alone."""
    if of_vectors(backbone):
        return (
            "## Features\n\nThe vectors were given. What network made them, and whether labels "
            "trained it, is not known here: name it where you give figures."
        )
    if not backbone or not is_pretrained(backbone):
        return ""
    told = backbone["pretrained"]
    name = "" if told["name"] == backbone["name"] else f" (`{_plain(backbone['name'])}`)"
    frozen = "kept frozen, so that the heads alone were trained here"
    how = frozen if backbone.get("frozen") else "fine-tuned here"
    said = {
        True: "Labels trained these weights",
        False: "No label trained these weights, but other data did",
        None: "Labels may have trained these weights",
    }[told["uses_labels"]]
    return (
        f"## Backbone\n\n{_plain(told['name'])}{name}, {how}: {_plain(weights(backbone))}. {said}: "
        "figures of this model cannot be compared with those of models from scratch."
    )


def public_source(source: str) -> str:
    """A source's name without the folders that lead to it, which are private."""
    benchmark, colon, _ = source.partition(":")
    if colon and len(benchmark) > 1 and "/" not in benchmark:
        return benchmark
    return PurePath(source).name


def _data(config: Mapping[str, Any], metrics: Mapping[str, Any] | None) -> str:
    source = public_source(config["data"]["source"]) or "arrays in memory"
    what = "vectors" if config["network"]["backbone"] == VECTORS else "images"
    counted = f", {metrics['n_images']:,} {what}" if metrics and "n_images" in metrics else ""
    taught = "No label of theirs took part in the training."
    if metrics and metrics.get("refined"):
        taught = f"The model {taught_by_people(metrics['refined'])}."
    return f"## Data\n\n{_plain(source)}{counted}. {taught}"


def _scores(metrics: Mapping[str, Any] | None) -> str:
    if not metrics or "scores" not in metrics:
        return ""
    lines = ["## Scores", ""]
    if metrics["scores"]:
        rows = {"dcdc": metrics["scores"], **metrics.get("baselines", {})}
        figures = [
            (
                name,
                *(f"{scores[key]:.3f}" if key in scores else "" for key in ("acc", "nmi", "ari")),
            )
            for name, scores in rows.items()
        ]
        lines += _table(("", "ACC", "NMI", "ARI"), figures)
        lines += ["", f"On {_trained_on(metrics)}, against their classes, last epoch."]
    else:
        lines += ["Not scored: the images had no classes to hold against."]
    health = metrics.get("health")
    if health:
        lines += [
            "",
            f"{health['active_clusters']} clusters in use, mean softmax share "
            f"{health['mean_confidence']:.2f}.",
        ]
    return "\n".join(lines)


def _trained_on(metrics: Mapping[str, Any]) -> str:
    backbone = metrics.get("backbone")
    if of_vectors(backbone):
        return "the given vectors that it was trained on"
    own = "the images it was trained on"
    if not backbone or not is_pretrained(backbone):
        return own
    return f"{own}, with weights trained before on {_plain(trained_on(backbone))}"


def _settings(config: Mapping[str, Any]) -> str:
    network = config["network"]
    phases = [phase for phase in config["phases"] if phase["epochs"]]
    rows = {
        "backbone": _backbone_setting(network),
        "clusters": config["n_clusters"],
        "over-clusters": network["over_clusters"],
        "phases": ", ".join(
            f"{phase['kind']}, {counted(phase['epochs'], 'epoch')}"
            + (f" of batches of {phase['batch_size']}" if phase["batch_size"] else "")
            for phase in phases
        ),
        "seed": config["train"]["seed"],
    }
    table = _table(("setting", "value"), [(key, str(value)) for key, value in rows.items()])
    return "\n".join(["## Settings", "", *table, "", "All of them are in `config.json`."])


def _backbone_setting(network: Mapping[str, Any]) -> str:
    if network["backbone"] == VECTORS:
        return "none: features are given"
    frozen = ", frozen" if network.get("frozen") else ""
    return f"{network['backbone']}{frozen}" + (", on Sobel edges" if network["sobel"] else "")


def _names(names: Mapping[int, str]) -> str:
    if not names:
        return ""
    rows = [(str(cluster), name) for cluster, name in sorted(names.items())]
    return "\n".join(["## Clusters", "", *_table(("cluster", "name"), rows)])


def _how_to_load(loading: str, config: Mapping[str, Any]) -> str:
    if config["network"]["backbone"] == VECTORS:
        takes = f"vectors)  # float32, N x {config['data']['n_features']}, of the same network"
    else:
        size, channels = config["data"]["size"], len(config["network"]["mean"])
        takes = f"images)  # uint8, N x {size} x {size} x {channels}; other sizes are brought to it"
    return f"""\
## How to load

```python
import dcdc

model = {loading}
model.predict({takes}
```"""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in cells]


def _plain(text: str) -> str:
    """A person's words as one cell or one heading."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
