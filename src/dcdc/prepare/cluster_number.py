"""How many clusters to find: the number that is asked for, or one for each class."""

import math

from dcdc.data import Data, ImageSet, Listing
from dcdc.errors import InputError
from dcdc.prepare.overrides import Overrides

CLASSES = "classes"
"""In the number's place: as many as there are classes, those of sub-folders too."""
_MOST_GUESSED = 50


def is_by_classes(overrides: Overrides) -> bool:
    return bool(overrides.given.get("n_clusters") == CLASSES)


def by_number(overrides: Overrides) -> Overrides:
    """Without the word `classes`, which is no number; any other word is refused."""
    value = overrides.given.get("n_clusters")
    if not isinstance(value, str):
        return overrides
    if value != CLASSES:
        raise InputError(
            "is no number of clusters",
            parameter="n_clusters",
            value=value,
            remedy=(
                "give a whole number; a first guess is the square root of half as many as there "
                f"are images, {{n_clusters={first_guess(338)}}} for 338",
                f"{{n_clusters={CLASSES}}} where there are classes",
            ),
        )
    return overrides.without("n_clusters")


def count_clusters(
    asked_for: int | None, found: Data | Listing, *, by_classes: bool = False
) -> int:
    """Sub-folders may be years, or phones: they are counted only where that is asked for."""
    if asked_for is not None:
        return asked_for
    n_images = len(found) if isinstance(found, Listing) else found.n_images
    n_classes = len(found.class_names)
    by_folder = isinstance(found, ImageSet | Listing) and found.by_folder
    if n_classes and (by_classes or not by_folder):
        return n_classes
    ways = [f"give {{n_clusters={first_guess(n_images)}}} for a first look at {n_images:,} images"]
    if n_classes:
        ways.append(f"{{n_clusters={CLASSES}}} for one for each of {n_classes} sub-folders")
    problem = "nothing says how many clusters to find"
    if by_classes and not n_classes:
        problem = "the images have no classes to count"
    raise InputError(problem, remedy=ways)


def first_guess(n_images: int) -> int:
    """A rule of thumb: the square root of half of them (Mardia, Kent and Bibby, 1979)."""
    return max(2, min(round(math.sqrt(n_images / 2)), _MOST_GUESSED))
