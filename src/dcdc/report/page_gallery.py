"""The page's galleries: of each cluster images by chance, the surest, and the least certain."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcdc.data.load_data import find_again
from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import FilePictures, Pictures, original_pictures
from dcdc.errors import InputError
from dcdc.metrics.health import OUTLIER
from dcdc.report.facts import ClusterFacts, RunFacts
from dcdc.report.gallery import (
    BY_CHANCE,
    LATER,
    LATER_BY_CHANCE,
    LATER_UNCERTAIN,
    MAX_CLUSTERS,
    PER_CLUSTER,
    UNCERTAIN_PER_CLUSTER,
    least_certain_images,
    once,
    random_images,
    shown_clusters,
    thumbnail_uri,
    typical_images,
)
from dcdc.report.page_data import short_name


@dataclass(frozen=True)
class Thumbnail:
    row: int
    uri: str | None
    says: str
    captions: list[str]


@dataclass(frozen=True, eq=False)
class GalleryRow:
    cluster: ClusterFacts
    by_chance: list[Thumbnail]
    typical: list[Thumbnail]
    uncertain: list[Thumbnail]

    @property
    def kinds(self) -> list[tuple[str, list[Thumbnail]]]:
        found = zip(KINDS, (self.by_chance, self.typical, self.uncertain), strict=True)
        return [(title, some) for title, some in found if some]


KINDS = ("by chance", "highest share", "least certain")


def gallery_rows(
    facts: RunFacts,
    in_use: list[ClusterFacts],
    images: Pictures | None,
    larger: Pictures | None,
) -> list[GalleryRow]:
    """Every cluster that has images; pictures for the first ones, the script adds the others'.
    `larger`: what is shown of `images`."""
    shown = [] if images is None else shown_clusters(in_use)
    numbers = (BY_CHANCE, PER_CLUSTER, UNCERTAIN_PER_CLUSTER)
    chosen = [_kinds(facts, cluster, images, numbers) for cluster in shown]
    if isinstance(larger, FilePictures):  # all at once: rows of a table are then read once
        larger.gather(np.array([row for kinds in chosen for kind in kinds for row in kind], int))
    rows = [
        GalleryRow(cluster, *(thumbnails(facts, larger, kind) for kind in kinds))
        for cluster, kinds in zip(shown, chosen, strict=True)
    ]
    return rows + [GalleryRow(cluster, [], [], []) for cluster in in_use[len(shown) :]]


def later_images(
    facts: RunFacts, in_use: list[ClusterFacts], images: Pictures
) -> dict[int, tuple[list[int], ...]]:
    """By cluster, of those that the script shows, each of KINDS."""
    numbers = (LATER_BY_CHANCE, LATER, LATER_UNCERTAIN)
    return {
        cluster.number: _kinds(facts, cluster, images, numbers) for cluster in in_use[MAX_CLUSTERS:]
    }


def _kinds(
    facts: RunFacts, cluster: ClusterFacts, images: Pictures | None, numbers: tuple[int, int, int]
) -> tuple[list[int], list[int], list[int]]:
    """Twice as many are looked at: some may be copies."""
    by_chance, typical, uncertain = numbers
    surest = once(typical_images(cluster, 2 * typical), images, typical)
    nearly_lost = least_certain_images(cluster, facts.certainty, 2 * uncertain + typical, 0)
    return (
        once(random_images(cluster, int(facts.metrics["seed"]), 2 * by_chance), images, by_chance),
        surest,
        once([row for row in nearly_lost if row not in surest], images, uncertain),
    )


def shown_rows(rows: list[GalleryRow]) -> list[int]:
    return [it.row for row in rows for _, some in row.kinds for it in some]


def thumbnails(facts: RunFacts, images: Pictures | None, positions: list[int]) -> list[Thumbnail]:
    if images is None:
        return [_thumbnail(facts, None, position) for position in positions]
    shown = gather_rows(images, np.array(positions, dtype=np.int64))
    return [
        _thumbnail(facts, image, position) for image, position in zip(shown, positions, strict=True)
    ]


def _thumbnail(facts: RunFacts, image: NDArray[np.uint8] | None, position: int) -> Thumbnail:
    says = f"{short_name(facts.names[position])}, share {facts.confidence[position]:.2f}"
    if facts.targets is not None:
        says += f", {facts.class_word} {facts.targets[position]}"
    cluster = facts.assignments[position]
    where = "no cluster" if cluster == OUTLIER else f"cluster {cluster}"
    captions = [f"{where}, {facts.confidence[position]:.2f}"]
    if facts.runner_up is not None and facts.runner_up_confidence is not None:
        second = f"{facts.runner_up[position]}, {facts.runner_up_confidence[position]:.2f}"
        says += f", next cluster {second}"
        captions.append(f"next {second}")
    return Thumbnail(position, None if image is None else thumbnail_uri(image), says, captions)


def best_pictures(facts: RunFacts, images: Pictures, at_most: int) -> Pictures:
    """`images`, or those of the source itself where these are larger: training may have taken 32
    pixels of a photo."""
    if not facts.source or images.shape[1] >= at_most:
        return images
    try:
        config = facts.config
        found = find_again(facts.source, config.get("data.target"), config.get("data.column"))
    except InputError:  # gone, or not to be read: what training saw is shown
        return images
    better = original_pictures(found, facts.names, at_most)
    return images if better is None or better.shape[1] <= images.shape[1] else better
