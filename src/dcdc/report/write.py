"""A run folder's figures and page, from what lies in the folder."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.report.affinity_figure import draw_affinities
from dcdc.report.clusters import describe_clusters
from dcdc.report.confusion_figure import MAX_CLASSES, draw_confusion, match
from dcdc.report.facts import RunFacts, read_facts
from dcdc.report.figure_files import Picture, write_figure, write_picture
from dcdc.report.gallery_figure import draw_gallery
from dcdc.report.layout import layout_of
from dcdc.report.map_figure import draw_map
from dcdc.report.page import render_page
from dcdc.report.page_data import MapPoints
from dcdc.report.panels import panels
from dcdc.report.sample import RunSample, read_sample
from dcdc.report.views import sorted_affinities
from dcdc.runtime.atomic_files import write_text

if TYPE_CHECKING:
    from dcdc.data.image_set import ImageSet
    from dcdc.run_folder import RunFolder


def write_figures_and_page(folder: "RunFolder", image_set: "ImageSet | None") -> Path:
    facts = read_facts(folder)
    clusters = describe_clusters(facts)
    pictures = {
        name: write_picture(partial(panel.draw, facts), folder.figures, name)
        for name, panel in panels().items()
        if panel.fits(facts)
    }
    if facts.targets is not None and len(set(facts.targets.tolist())) <= MAX_CLASSES:
        pictures["confusion"] = write_picture(
            partial(draw_confusion, match(facts)), folder.figures, "confusion"
        )
    sample = read_sample(folder)
    points = None
    if sample is not None:
        layouts = layout_of(folder, sample, int(facts.metrics["seed"]))
        points = MapPoints(sample.rows, layouts)
        pictures |= _sample_pictures(folder, facts, sample, points)
    images, no_gallery = None, None
    if image_set is None:
        no_gallery = "The images were not at hand when this page was written."
    elif problem := facts.why_not_these_images(image_set):
        no_gallery = f"The images at hand are not those of this run: {problem}."
    else:
        images = image_set.images
        # The page shows the images themselves; the figure is for print.
        write_figure(partial(draw_gallery, clusters, images), folder.figures, "clusters")
    page = render_page(
        facts,
        clusters,
        pictures,
        images=images,
        no_gallery=no_gallery,
        points=points,
    )
    write_text(folder.report_file, page)
    return folder.report_file


def _sample_pictures(
    folder: "RunFolder", facts: RunFacts, sample: RunSample, points: MapPoints
) -> dict[str, Picture]:
    """The map, and the two affinities."""
    targets = facts.targets
    clusters = facts.assignments[sample.rows]
    classes = None if targets is None else targets[sample.rows]
    draw_it = partial(draw_map, points.layouts, clusters, classes)
    affinities = sorted_affinities(sample, facts.assignments if targets is None else targets)
    draw_them = partial(draw_affinities, affinities, targets is not None)
    return {
        "map": write_picture(draw_it, folder.figures, "map"),
        "affinity": write_picture(draw_them, folder.figures, "affinity"),
    }
