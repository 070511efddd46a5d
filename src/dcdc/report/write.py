"""A run folder's figures and page, from what lies in the folder."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.report.clusters import describe_clusters
from dcdc.report.confusion_figure import MAX_CLASSES, draw_confusion, match
from dcdc.report.facts import read_facts
from dcdc.report.figure_files import write_figure, write_picture
from dcdc.report.gallery_figure import draw_gallery
from dcdc.report.page import render_page
from dcdc.report.sizes_figure import draw_sizes
from dcdc.report.training_figure import draw_training
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
