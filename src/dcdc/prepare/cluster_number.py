"""How many clusters to find: the number that is asked for, one for each class, or what the images
settle on."""

import math
import re
from typing import NamedTuple

from dcdc.data import Data, ImageSet, Listing
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.errors import InputError
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.prepare.overrides import Overrides

CLASSES = "classes"
"""In the number's place: as many as there are classes, those of sub-folders too."""
AUTO = "auto"
"""In the number's place: what the images settle on. So does a range such as 5-40."""
_MOST_GUESSED = 50
_LOWEST, _HIGHEST = 3, 30
"""Where nothing else is said. Nearly all images fall into two kinds, which is not what is asked."""
_IMAGES_OF_CLUSTER = 20
"""At least: half of them are to tell that it is there."""


class FoundNumber(NamedTuple):
    number: ClusterNumber
    first: FirstEpochs | None = None
    """That were trained to find it, where features had to be learnt."""


class NumberRange(NamedTuple):
    lowest: int | None = None
    highest: int | None = None

    def among(self, n_images: int) -> tuple[int, int]:
        """The lowest and the highest number to look at."""
        lowest = self.lowest or _LOWEST
        highest = self.highest or min(_HIGHEST, n_images // _IMAGES_OF_CLUSTER)
        if highest < lowest or highest * 4 > n_images:
            raise InputError(
                f"{n_images:,} images are too few to settle how many clusters there are",
                remedy=f"give a whole number, such as {{n_clusters={first_guess(n_images)}}}",
            )
        return lowest, highest


def is_by_classes(overrides: Overrides) -> bool:
    return bool(overrides.given.get("n_clusters") == CLASSES)


def range_asked_for(overrides: Overrides) -> NumberRange | None:
    """Where the images are to settle the number."""
    value = overrides.given.get("n_clusters")
    if value == AUTO:
        return NumberRange()
    found = re.fullmatch(r"(\d{1,6})-(\d{1,6})", value) if isinstance(value, str) else None
    if found is None:
        return None
    lowest, highest = int(found[1]), int(found[2])
    if not 2 <= lowest < highest:
        raise InputError(
            "is no range of numbers",
            parameter="n_clusters",
            value=value,
            remedy="give two from 2 on, the lower one first, such as {n_clusters=5-40}",
        )
    return NumberRange(lowest, highest)


def refuse_range(overrides: Overrides) -> None:
    """Where every method and seed is to find as many clusters as every other."""
    if range_asked_for(overrides) is not None:
        raise InputError(
            "how many clusters there are is settled by `fit` in one process alone",
            remedy="give a whole number of clusters",
        )


def by_number(overrides: Overrides) -> Overrides:
    """Without words and ranges in the number's place; any other word is refused."""
    value = overrides.given.get("n_clusters")
    if not isinstance(value, str):
        return overrides
    if value != CLASSES and range_asked_for(overrides) is None:
        raise InputError(
            "is no number of clusters",
            parameter="n_clusters",
            value=value,
            remedy=(
                "give a whole number; a first guess is the square root of half as many as there "
                f"are images, {{n_clusters={first_guess(338)}}} for 338",
                f"{{n_clusters={AUTO}}} or {{n_clusters=5-40}} where the images are to settle it",
                f"{{n_clusters={CLASSES}}} where there are classes",
            ),
        )
    return overrides.without("n_clusters")


def count_clusters(
    asked_for: int | None,
    found: Data | Listing,
    *,
    by_classes: bool = False,
    may_settle: bool = True,
) -> int:
    """Sub-folders may be years, or phones: they are counted only where that is asked for."""
    if asked_for is not None:
        return asked_for
    n_images = len(found) if isinstance(found, Listing) else found.n_images
    n_classes = len(found.class_names)
    by_folder = isinstance(found, ImageSet | Listing) and found.by_folder
    if n_classes and (by_classes or not by_folder):
        return n_classes
    ways = [f"{{n_clusters={first_guess(n_images)}}} for a first look at {n_images:,} images"]
    if may_settle:
        ways.insert(0, f"{{n_clusters={AUTO}}} where the images are to settle it")
    ways[0] = f"give {ways[0]}"
    if n_classes:
        ways.append(f"{{n_clusters={CLASSES}}} for one for each of {n_classes} sub-folders")
    problem = "nothing says how many clusters to find"
    if by_classes and not n_classes:
        problem = "the images have no classes to count"
    raise InputError(problem, remedy=ways)


def first_guess(n_images: int) -> int:
    """A rule of thumb: the square root of half of them (Mardia, Kent and Bibby, 1979)."""
    return max(2, min(round(math.sqrt(n_images / 2)), _MOST_GUESSED))
