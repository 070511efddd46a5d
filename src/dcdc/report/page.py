"""The page: one HTML file with everything inside, one script of ours, and nothing that loads."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import Pictures, missing_pictures, pictures_of
from dcdc.metrics.provenance import of_vectors
from dcdc.metrics.provenance import short_name as short_backbone_name
from dcdc.metrics.scores import is_highest
from dcdc.report.affinity_figure import draw_affinities, sorted_affinities
from dcdc.report.confusion_figure import MAX_CLASSES, Confusion, draw_confusion, match
from dcdc.report.facts import (
    ClusterFacts,
    RunFacts,
    RunSample,
    describe_clusters,
    read_facts,
    read_sample,
)
from dcdc.report.figures import Picture, write_figure, write_picture
from dcdc.report.gallery import (
    LATER,
    LATER_UNCERTAIN,
    MAX_CLUSTERS,
    draw_gallery,
    least_certain_images,
    most_uncertain_images,
    shown_clusters,
    thumbnail_uri,
    typical_images,
)
from dcdc.report.map_figure import draw_map
from dcdc.report.map_layout import layout_of
from dcdc.report.page_data import MapPoints, as_script, page_data, short_name
from dcdc.report.panels import panels
from dcdc.report.rendering import duration, render, script_of
from dcdc.report.reproduce import command, config_lines
from dcdc.report.themes import DARK, LIGHT
from dcdc.runtime.atomic_files import write_text

if TYPE_CHECKING:
    from dcdc.data.vector_set import Data
    from dcdc.run_folder import RunFolder


MAX_SKIPPED = 50

_SCORE_COLUMNS = {"acc": "ACC", "nmi": "NMI", "ari": "ARI", "purity": "purity"}
_STATIC_MAP = 1_500_000  # characters; a heavier picture of the map is left to its own files


@dataclass(frozen=True)
class Thumbnail:
    uri: str | None
    says: str
    captions: list[str]


@dataclass(frozen=True, eq=False)
class GalleryRow:
    cluster: ClusterFacts
    typical: list[Thumbnail]
    uncertain: list[Thumbnail]


@dataclass(frozen=True)
class ScoreRow:
    method: str
    scores: list[tuple[str, bool]]  # text, whether it is the best of its column


def render_page(
    facts: RunFacts,
    clusters: list[ClusterFacts],
    pictures: Mapping[str, Picture],
    *,
    images: Pictures | None,
    no_gallery: str | None,
    points: MapPoints | None = None,
) -> str:
    """`pictures` by the stem of their files; `no_gallery` says why there is none."""
    in_use = [cluster for cluster in clusters if cluster.size]
    confusion = _confusion(facts)
    later = _later(facts, in_use) if images is not None else {}
    data = page_data(facts, in_use, images=images, points=points, later=later, confusion=confusion)
    script = script_of("shared.js", "report.js")
    stems = [*pictures, *(["clusters"] if images is not None else [])]
    static_map = pictures.get("map")
    return render(
        "report.html",
        facts=facts,
        n_images=f"{facts.metrics['n_images']:,}",
        headline=_headline(facts, clusters),
        details=_details(facts),
        score_columns=list(_SCORE_COLUMNS.values()),
        score_rows=_score_rows(facts.metrics),
        pictures=pictures,
        panels=panels(),
        gallery=_gallery(facts, in_use, images),
        n_empty=len(clusters) - len(in_use),
        n_first=MAX_CLUSTERS,
        coarse=data["coarse"],
        no_gallery=no_gallery,
        n_on_map=0 if points is None else len(points.rows),
        layouts=[] if points is None else list(points.layouts),
        map_has_images=bool(data["map"] and data["map"]["sheet"]),
        shows_static_map=static_map is not None
        and len(static_map.light) + len(static_map.dark) <= _STATIC_MAP,
        confusion=None if confusion is None else _confusion_rows(confusion),
        confusion_clusters=[] if confusion is None else confusion.clusters,
        uncertain=_thumbnails(facts, images, most_uncertain_images(facts.certainty)),
        skipped=facts.skipped[:MAX_SKIPPED],
        n_more_skipped=max(0, len(facts.skipped) - MAX_SKIPPED),
        config_lines=config_lines(facts),
        command=command(facts),
        figure_stems=sorted(stems),
        light=LIGHT,
        dark=DARK,
        data=as_script(data),
        script=script.text,
        script_hash=script.known_by,
        mark=facts.origin,
        was_taught=bool(facts.metrics.get("refined")),
        # Last: all pictures have been asked for.
        missing_pictures=missing_pictures(images, facts.names),
    )


def _headline(facts: RunFacts, clusters: list[ClusterFacts]) -> list[tuple[str, str]]:
    """The figures that a person asks for first."""
    metrics = facts.metrics
    n_in_use = sum(cluster.size > 0 for cluster in clusters)
    n_clusters = f"{facts.n_clusters}"
    if n_in_use < facts.n_clusters:
        n_clusters += f" ({n_in_use} in use)"
    scores = metrics["scores"] or {}
    return [
        (facts.things, f"{metrics['n_images']:,}"),
        ("clusters", n_clusters),
        *((_SCORE_COLUMNS[key], f"{scores[key]:.3f}") for key in _SCORE_COLUMNS if key in scores),
        ("confidence", f"{facts.confidence.mean():.3f}"),
        ("training time", duration(metrics["training_seconds"])),
    ]


def _details(facts: RunFacts) -> list[tuple[str, str]]:
    metrics = facts.metrics
    return [
        ("source", facts.source or f"{facts.things} from Python"),
        (facts.things, f"{metrics['n_images']:,} {_shape(metrics)}"),
        *_features(facts),
        *_refined(facts),
        ("epochs", str(metrics["epochs"])),
        ("device", str(metrics["device"])),
        ("seed", str(metrics["seed"])),
    ]


def _shape(metrics: Mapping[str, Any]) -> str:
    if "n_features" in metrics:
        return f"of {metrics['n_features']} numbers"
    if "image_shape" not in metrics:
        return ""
    height, width, channels = metrics["image_shape"]
    colour = "grey" if channels == 1 else "colour"
    return f"of {height} \N{MULTIPLICATION SIGN} {width}, {colour}"


def _features(facts: RunFacts) -> list[tuple[str, str]]:
    """Whose weights they are of; nothing of runs that have not kept it."""
    backbone = facts.backbone
    if not backbone or of_vectors(backbone):
        return []
    return [("backbone", short_backbone_name(backbone))]


def _refined(facts: RunFacts) -> list[tuple[str, str]]:
    """What a run that learnt from corrections came from."""
    refined = facts.metrics.get("refined")
    if not refined:
        return []
    edits = ", ".join(f"{count} {kind}" for kind, count in refined["edits"].items())
    n_outside = int((~facts.is_inside).sum())
    return [
        ("refined from", f"{Path(refined['source']).name or 'Python'}, by edits: {edits}"),
        *([(f"{facts.things} in no cluster", f"{n_outside:,}")] if n_outside else []),
    ]


def _score_rows(metrics: Mapping[str, Any]) -> list[ScoreRow]:
    """DCDC first; none without targets."""
    if not metrics["scores"]:
        return []
    methods = {"DCDC": metrics["scores"], **(metrics.get("baselines") or {})}
    column = {
        key: [scores[key] for scores in methods.values() if key in scores] for key in _SCORE_COLUMNS
    }
    return [
        ScoreRow(
            method,
            [
                (f"{scores[key]:.3f}", is_highest(scores[key], column[key]))
                if key in scores
                else ("", False)
                for key in _SCORE_COLUMNS
            ],
        )
        for method, scores in methods.items()
    ]


def _thumbnails(facts: RunFacts, images: Pictures | None, positions: list[int]) -> list[Thumbnail]:
    if images is None:
        return [_thumbnail(facts, None, position) for position in positions]
    shown = gather_rows(images, np.array(positions, dtype=np.int64))
    return [
        _thumbnail(facts, image, position) for image, position in zip(shown, positions, strict=True)
    ]


def _thumbnail(facts: RunFacts, image: NDArray[np.uint8] | None, position: int) -> Thumbnail:
    says = f"{short_name(facts.names[position])}, confidence {facts.confidence[position]:.2f}"
    if facts.targets is not None:
        says += f", class {facts.targets[position]}"
    captions = [f"cluster {facts.assignments[position]}, {facts.confidence[position]:.2f}"]
    if facts.runner_up is not None and facts.runner_up_confidence is not None:
        second = f"{facts.runner_up[position]}, {facts.runner_up_confidence[position]:.2f}"
        says += f", next cluster {second}"
        captions.append(f"next {second}")
    return Thumbnail(None if image is None else thumbnail_uri(image), says, captions)


def _gallery(
    facts: RunFacts, in_use: list[ClusterFacts], images: Pictures | None
) -> list[GalleryRow]:
    """Every cluster that has images; pictures for the first ones, the script adds the others'."""
    shown = [] if images is None else shown_clusters(in_use)
    certainty = facts.certainty
    rows = [
        GalleryRow(
            cluster,
            _thumbnails(facts, images, typical_images(cluster)),
            _thumbnails(facts, images, least_certain_images(cluster, certainty)),
        )
        for cluster in shown
    ]
    return rows + [GalleryRow(cluster, [], []) for cluster in in_use[len(shown) :]]


def _later(facts: RunFacts, in_use: list[ClusterFacts]) -> dict[int, tuple[list[int], list[int]]]:
    certainty = facts.certainty
    return {
        cluster.number: (
            typical_images(cluster, LATER),
            least_certain_images(cluster, certainty, LATER_UNCERTAIN, LATER),
        )
        for cluster in in_use[MAX_CLUSTERS:]
    }


def _confusion(facts: RunFacts) -> Confusion | None:
    if facts.targets is None or len(set(facts.targets.tolist())) > MAX_CLASSES:
        return None
    return match(facts)


def _confusion_rows(confusion: Confusion) -> list[tuple[str, list[tuple[int, float]]]]:
    """Each class with its count and share in every cluster."""
    shares = confusion.table / confusion.table.sum(axis=1, keepdims=True)
    return [
        (name, list(zip(counts.tolist(), row.tolist(), strict=True)))
        for name, counts, row in zip(confusion.classes, confusion.table, shares, strict=True)
    ]


def write_figures_and_page(folder: "RunFolder", image_set: "Data | None") -> Path:
    facts = read_facts(folder)
    clusters = describe_clusters(facts)
    pictures = {
        name: write_picture(partial(panel.draw, facts), folder.figures, name)
        for name, panel in panels().items()
        if panel.fits(facts)
    }
    if confusion := _confusion(facts):
        pictures["confusion"] = write_picture(
            partial(draw_confusion, confusion), folder.figures, "confusion"
        )
    sample = read_sample(folder)
    points = None
    if sample is not None:
        layouts = layout_of(folder, sample, int(facts.metrics["seed"]))
        inside = facts.is_inside[sample.rows]
        places = {name: each[inside] for name, each in layouts.items()}
        points = MapPoints(sample.rows[inside], places)
        pictures |= _sample_pictures(folder, facts, sample, points)
    images, no_gallery = pictures_for(facts, image_set)
    if images is not None:
        # The page shows the images themselves; the figure is for print.
        write_figure(partial(draw_gallery, clusters, images), folder.figures, "clusters")
    page = render_page(
        facts, clusters, pictures, images=images, no_gallery=no_gallery, points=points
    )
    write_text(folder.report_file, page)
    return folder.report_file


def pictures_for(facts: RunFacts, image_set: "Data | None") -> tuple[Pictures | None, str | None]:
    """Of the images of a run, or none, and why."""
    if image_set is None:
        return None, "The images of the run are not at hand."
    if problem := facts.why_not_these_images(image_set):
        return None, f"The images at hand are not those of this run: {problem}."
    return pictures_of(image_set)


def _sample_pictures(
    folder: "RunFolder", facts: RunFacts, sample: RunSample, points: MapPoints
) -> dict[str, Picture]:
    """The map, and the two affinities."""
    targets = facts.targets
    clusters = facts.assignments[points.rows]
    classes = None if targets is None else targets[points.rows]
    draw_it = partial(draw_map, points.layouts, clusters, classes)
    affinities = sorted_affinities(
        sample, facts.assignments if targets is None else targets, facts.partners
    )
    draw_them = partial(draw_affinities, affinities, targets is not None)
    return {
        "map": write_picture(draw_it, folder.figures, "map"),
        "affinity": write_picture(draw_them, folder.figures, "affinity"),
    }
