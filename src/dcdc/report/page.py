"""The page: one HTML file with everything inside, and nothing in it that runs or loads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from dcdc.report.clusters import ClusterFacts
from dcdc.report.facts import RunFacts
from dcdc.report.figure_files import Picture, data_uri
from dcdc.report.gallery import (
    gallery_heading,
    is_coarse,
    shown_clusters,
    thumbnail_png,
    typical_images,
)
from dcdc.report.reproduce import command, config_lines
from dcdc.report.theme import DARK, LIGHT

MAX_SKIPPED = 50

_SCORE_COLUMNS = {"acc": "ACC", "nmi": "NMI", "ari": "ARI", "purity": "purity"}


@dataclass(frozen=True)
class Thumbnail:
    uri: str
    says: str


@dataclass(frozen=True, eq=False)
class GalleryRow:
    cluster: ClusterFacts
    thumbnails: list[Thumbnail]


@dataclass(frozen=True)
class ScoreRow:
    method: str
    scores: list[tuple[str, bool]]  # text, whether it is the best of its column


def render_page(
    facts: RunFacts,
    clusters: list[ClusterFacts],
    pictures: Mapping[str, Picture],
    *,
    images: NDArray[np.uint8] | None,
    no_gallery: str | None,
) -> str:
    """`pictures` by the stem of their files; `no_gallery` says why there are no images."""
    environment = Environment(
        loader=PackageLoader("dcdc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("report.html").render(
        facts=facts,
        headline=_headline(facts, clusters),
        score_columns=list(_SCORE_COLUMNS.values()),
        score_rows=_score_rows(facts.metrics),
        pictures=pictures,
        gallery=[] if images is None else _gallery(facts, clusters, images),
        gallery_heading=gallery_heading(clusters),
        coarse=images is not None and is_coarse(images.shape[1]),
        no_gallery=no_gallery,
        skipped=facts.skipped[:MAX_SKIPPED],
        n_more_skipped=max(0, len(facts.skipped) - MAX_SKIPPED),
        config_lines=config_lines(facts),
        command=command(facts),
        light=LIGHT,
        dark=DARK,
    )
    # A file name that is no valid text must not keep the page from being written.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _headline(facts: RunFacts, clusters: list[ClusterFacts]) -> list[tuple[str, str]]:
    metrics = facts.metrics
    height, width, channels = metrics["image_shape"]
    colour = "grey" if channels == 1 else "colour"
    n_alive = sum(cluster.size > 0 for cluster in clusters)
    n_clusters = f"{facts.n_clusters}"
    if n_alive < facts.n_clusters:
        n_clusters += f" ({n_alive} in use)"
    return [
        ("source", facts.source or "images from Python"),
        (
            "images",
            f"{metrics['n_images']:,} of {height} \N{MULTIPLICATION SIGN} {width}, {colour}",
        ),
        ("clusters", n_clusters),
        ("mean confidence", f"{facts.confidence.mean():.3f}"),
        ("epochs", str(metrics["epochs"])),
        ("training time", duration(metrics["training_seconds"])),
        ("device", str(metrics["device"])),
        ("seed", str(metrics["seed"])),
    ]


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _score_rows(metrics: Mapping[str, Any]) -> list[ScoreRow]:
    """DCDC first; none without targets."""
    if not metrics["scores"]:
        return []
    methods = {"DCDC": metrics["scores"], **(metrics.get("baselines") or {})}
    best = {
        key: max(scores[key] for scores in methods.values() if key in scores)
        for key in _SCORE_COLUMNS
        if any(key in scores for scores in methods.values())
    }
    return [
        ScoreRow(
            method,
            [
                (f"{scores[key]:.3f}", scores[key] == best[key]) if key in scores else ("", False)
                for key in _SCORE_COLUMNS
            ],
        )
        for method, scores in methods.items()
    ]


def _gallery(
    facts: RunFacts, clusters: list[ClusterFacts], images: NDArray[np.uint8]
) -> list[GalleryRow]:
    def thumbnail(position: int) -> Thumbnail:
        says = f"{facts.names[position]}, confidence {facts.confidence[position]:.2f}"
        if facts.targets is not None:
            says += f", class {facts.targets[position]}"
        return Thumbnail(data_uri(thumbnail_png(images[position]), "image/png"), says)

    return [
        GalleryRow(cluster, [thumbnail(position) for position in typical_images(cluster)])
        for cluster in shown_clusters(clusters)
    ]
