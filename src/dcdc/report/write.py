"""A run folder's figures and page, from what lies in the folder."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.report.affinity_figure import draw_affinities
from dcdc.report.clusters import describe_clusters
from dcdc.report.confusion_figure import MAX_CLASSES, draw_confusion, match
from dcdc.report.facts import RunFacts, read_facts
from dcdc.report.figure_files import write_figure, write_picture
from dcdc.report.gallery_figure import draw_gallery
from dcdc.report.layout import layout_of
from dcdc.report.map_figure import draw_map
from dcdc.report.page import render_page
from dcdc.report.sample import RunSample, read_sample
from dcdc.report.sizes_figure import draw_sizes
from dcdc.report.training_figure import draw_training
from dcdc.report.views import sorted_affinities
from dcdc.runtime.atomic_files import write_text

if TYPE_CHECKING:
    from dcdc.data.image_set import ImageSet
    from dcdc.run_folder import RunFolder


def write_figures_and_page(folder: "RunFolder", image_set: "ImageSet | None") -> Path:
    facts = read_facts(folder)
    clusters = describe_clusters(facts)
    pictures = {}
    if facts.history:
        pictures["training"] = write_picture(
            partial(draw_training, facts), folder.figures, "training"
        )
    pictures["sizes"] = write_picture(partial(draw_sizes, clusters), folder.figures, "sizes")
    if facts.targets is not None and len(set(facts.targets.tolist())) <= MAX_CLASSES:
        pictures["confusion"] = write_picture(
            partial(draw_confusion, match(facts)), folder.figures, "confusion"
        )
    sample = read_sample(folder)
    if sample is not None:
        _write_sample_figures(folder, facts, sample)
    images, no_gallery = None, None
    if image_set is None:
        no_gallery = "The images were not at hand when this page was written."
    elif problem := facts.why_not_these_images(image_set):
        no_gallery = f"The images at hand are not those of this run: {problem}."
    else:
        images = image_set.images
        # The page shows the images themselves; the figure is for print.
        write_figure(partial(draw_gallery, clusters, images), folder.figures, "clusters")
    page = render_page(facts, clusters, pictures, images=images, no_gallery=no_gallery)
    write_text(folder.report_file, page)
    return folder.report_file


def _write_sample_figures(folder: "RunFolder", facts: RunFacts, sample: RunSample) -> None:
    """For print: the map, and the two affinities."""
    targets = facts.targets
    layouts = layout_of(folder, sample, int(facts.metrics["seed"]))
    clusters = facts.assignments[sample.rows]
    classes = None if targets is None else targets[sample.rows]
    write_figure(partial(draw_map, layouts, clusters, classes), folder.figures, "map")
    affinities = sorted_affinities(sample, facts.assignments if targets is None else targets)
    by_class = targets is not None
    write_figure(partial(draw_affinities, affinities, by_class), folder.figures, "affinity")
