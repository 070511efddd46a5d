"""The page: one HTML file with everything inside, one script of ours, and nothing that loads."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from dcdc.data.pictures import FilePictures, Pictures, missing_pictures, pictures_of
from dcdc.metrics.hierarchy import Hierarchy
from dcdc.metrics.provenance import of_vectors
from dcdc.metrics.provenance import short_name as short_backbone_name
from dcdc.metrics.scores import is_highest
from dcdc.report.affinity_figure import draw_affinities, sorted_affinities
from dcdc.report.confusion_figure import MAX_CLASSES, Confusion, draw_confusion, match
from dcdc.report.facts import (
    OVERSTATED,
    ClusterFacts,
    RunFacts,
    RunSample,
    describe_clusters,
    read_facts,
    read_sample,
    with_agreement,
)
from dcdc.report.figures import Picture, write_figure, write_picture
from dcdc.report.gallery import (
    MAX_CLUSTERS,
    PRINT_SIDE,
    SIDE,
    UNCERTAIN,
    draw_gallery,
    is_coarse,
    most_uncertain_images,
    once,
    outliers_to_show,
    printed_images,
)
from dcdc.report.hierarchy_figure import draw_hierarchy, hierarchy_of, rows_of, steps_of
from dcdc.report.map_figure import draw_map
from dcdc.report.map_layout import Places, layout_of
from dcdc.report.page_data import MapPoints, as_script, page_data
from dcdc.report.page_gallery import (
    KINDS,
    best_pictures,
    gallery_rows,
    later_images,
    shown_rows,
    thumbnails,
)
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
    larger: Pictures | None = None,
    agreement: float | None = None,
    answers: str = "",
    n_edits: int = 0,
    hierarchy: Hierarchy | None = None,
) -> str:
    """`pictures` by the stem of their files; `no_gallery` says why there is none; `larger`: the
    images at a size for galleries, where there is a better one than that of `images`;
    `agreement`: of neighbours, where features tell; `answers`: the digest of what corrections are
    of; `n_edits`: how many were made elsewhere."""
    larger = images if larger is None else larger
    in_use = [cluster for cluster in clusters if cluster.size]
    confusion = _confusion(facts)
    later = later_images(facts, in_use, images) if images is not None else {}
    gallery = gallery_rows(facts, in_use, images, larger)
    least_clear = most_uncertain_images(facts, 2 * UNCERTAIN)
    uncertain = thumbnails(facts, larger, once(least_clear, images, UNCERTAIN))
    data = page_data(
        facts,
        in_use,
        images=images,
        points=points,
        later=later,
        kinds=KINDS,
        confusion=confusion,
        shown=[*shown_rows(gallery), *(it.row for it in uncertain)],
        answers=answers,
    )
    script = script_of("shared.js", "report.js", "corrections.js")
    stems = [*pictures, *(["clusters"] if images is not None else [])]
    static_map = pictures.get("map")
    return render(
        "report.html",
        facts=facts,
        n_images=f"{facts.metrics['n_images']:,}",
        headline=_headline(facts, clusters, agreement),
        share=float(facts.confidence.mean()),
        agreement=agreement,
        overstates=agreement is not None and facts.confidence.mean() - agreement > OVERSTATED,
        details=_details(facts),
        score_columns=list(_SCORE_COLUMNS.values()),
        score_rows=_score_rows(facts.metrics),
        pictures=pictures,
        panels=panels(),
        gallery=gallery,
        n_empty=len(clusters) - len(in_use),
        n_first=MAX_CLUSTERS,
        coarse=larger is not None and is_coarse(larger.shape[1]),
        no_gallery=no_gallery,
        n_on_map=0 if points is None else len(points.rows),
        layouts=[] if points is None else list(points.layouts),
        map_has_images=bool(data["map"] and data["map"]["sheet"]),
        shows_static_map=static_map is not None
        and len(static_map.light) + len(static_map.dark) <= _STATIC_MAP,
        confusion=None if confusion is None else _confusion_rows(confusion),
        confusion_clusters=[] if confusion is None else confusion.clusters,
        uncertain=uncertain,
        outliers=thumbnails(facts, larger, outliers_to_show(facts)),
        steps=[] if hierarchy is None else steps_of(hierarchy),
        n_edits=n_edits,
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
        missing_pictures=missing_pictures(larger, facts.names),
    )


def _headline(
    facts: RunFacts, clusters: list[ClusterFacts], agreement: float | None
) -> list[tuple[str, str]]:
    """The figures that a person asks for first."""
    metrics = facts.metrics
    n_in_use = sum(cluster.size > 0 for cluster in clusters)
    n_clusters = f"{facts.n_clusters}"
    if n_in_use < facts.n_clusters:
        n_clusters += f" ({n_in_use} in use)"
    scores = metrics["scores"] or {}
    n_outliers = len(facts.outliers)
    return [
        (facts.things, f"{metrics['n_images']:,}"),
        ("clusters", n_clusters),
        *([("in no cluster", f"{n_outliers:,}")] if n_outliers else []),
        *((_SCORE_COLUMNS[key], f"{scores[key]:.3f}") for key in _SCORE_COLUMNS if key in scores),
        ("softmax share", f"{facts.confidence.mean():.3f}"),
        *([] if agreement is None else [("neighbours agree", f"{agreement:.3f}")]),
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
    return [("refined from", f"{Path(refined['source']).name or 'Python'}, by edits: {edits}")]


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


def write_figures_and_page(
    folder: "RunFolder", image_set: "Data | None", t_sne: Places | None = None
) -> Path:
    # The layout's limit on threads is the whole process's, and it ends at any time.
    with threadpool_limits(1):
        return _write(folder, image_set, t_sne)


def _write(folder: "RunFolder", image_set: "Data | None", t_sne: Places | None) -> Path:
    facts, answers = read_facts(folder), folder.read_answers()
    clusters, sample = describe_clusters(facts), read_sample(folder)
    layouts = None
    if sample is not None:
        layouts = layout_of(folder, sample, int(facts.metrics["seed"]), t_sne)
    pictures = {
        name: write_picture(partial(panel.draw, facts), folder.figures, name)
        for name, panel in panels().items()
        if panel.fits(facts)
    }
    if confusion := _confusion(facts):
        pictures["confusion"] = write_picture(
            partial(draw_confusion, confusion), folder.figures, "confusion"
        )
    agreement = None
    if sample is not None:
        agreement, clusters = with_agreement(facts, clusters, sample)
        pictures["affinity"] = _affinity_picture(folder, facts, sample)
    images, no_gallery = pictures_for(facts, image_set)
    hierarchy = hierarchy_of(folder, facts, sample)
    if hierarchy is not None and len(hierarchy.joins) > 1:
        rows = rows_of(hierarchy, clusters, facts.cluster_names)
        draw_tree = partial(draw_hierarchy, hierarchy, rows, images)
        pictures["hierarchy"] = write_picture(draw_tree, folder.figures, "hierarchy")
    larger = None
    if images is not None:
        # The page shows the images themselves; the figure is for print.
        larger = best_pictures(facts, images, SIDE)
        _write_gallery(folder, facts, clusters, images)
    points = None
    if sample is not None and layouts is not None:
        inside = facts.is_inside[sample.rows]
        places = {name: each[inside] for name, each in layouts().items()}
        points = MapPoints(sample.rows[inside], places)
        pictures["map"] = _map_picture(folder, facts, points)
    page = render_page(
        facts,
        clusters,
        pictures,
        images=images,
        no_gallery=no_gallery,
        points=points,
        larger=larger,
        agreement=agreement,
        answers=answers.digest,
        n_edits=len(folder.read_edits(answers).made),
        hierarchy=hierarchy,
    )
    write_text(folder.report_file, page)
    return folder.report_file


def _write_gallery(
    folder: "RunFolder", facts: RunFacts, clusters: list[ClusterFacts], images: Pictures
) -> None:
    chosen = printed_images(clusters, images, int(facts.metrics["seed"]))
    larger = best_pictures(facts, images, PRINT_SIDE)
    if isinstance(larger, FilePictures):  # all at once: rows of a table are then read once
        rows = [row for _, kinds in chosen for kind in kinds for row in kind]
        larger.gather(np.array(rows, int))
    write_figure(partial(draw_gallery, clusters, chosen, larger), folder.figures, "clusters")


def pictures_for(facts: RunFacts, image_set: "Data | None") -> tuple[Pictures | None, str | None]:
    """Of the images of a run, or none, and why."""
    if image_set is None:
        return None, "The images of the run are not at hand."
    if problem := facts.why_not_these_images(image_set):
        return None, f"The images at hand are not those of this run: {problem}."
    return pictures_of(image_set)


def _map_picture(folder: "RunFolder", facts: RunFacts, points: MapPoints) -> Picture:
    classes = None if facts.targets is None else facts.targets[points.rows]
    draw_it = partial(draw_map, points.layouts, facts.assignments[points.rows], classes)
    return write_picture(draw_it, folder.figures, "map")


def _affinity_picture(folder: "RunFolder", facts: RunFacts, sample: RunSample) -> Picture:
    targets = facts.targets
    affinities = sorted_affinities(
        sample, facts.assignments if targets is None else targets, facts.partners
    )
    draw_them = partial(draw_affinities, affinities, targets is not None)
    return write_picture(draw_them, folder.figures, "affinity")
