"""What `dcdc compare` compares on: pixels, given feature vectors, or those of a backbone."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from dcdc.cli.experiments import read_images_for
from dcdc.errors import InputError, no_meaning

if TYPE_CHECKING:
    from dcdc.config import DataConfig
    from dcdc.data import Data
    from dcdc.experiments.method_runs import Features


def read_compared(device: str, data: "DataConfig", backbone: str | None, *, quiet: bool) -> "Data":
    """Every run reads its own, but what cannot be read is told once, and what can is cached."""
    if backbone is None:
        return read_images_for(device, data, quiet=quiet)
    from dcdc.data import VectorSet
    from dcdc.prepare.frozen_features import require_pretrained

    side = require_pretrained(backbone).size
    found = read_images_for(device, data, quiet=quiet, largest_side=side)
    if isinstance(found, VectorSet):
        raise no_meaning("backbone", backbone, f"{data.source}, which holds feature vectors")
    return found


def features_to_compare(
    images: "Data", backbone: str | None, n_clusters: int, device: str, *, quiet: bool
) -> tuple["Data", "Features | None"]:
    """What methods are given. Feature vectors of images are computed where they are not kept yet;
    without a backbone, data stay as they are."""
    from dcdc.data import VectorSet
    from dcdc.experiments.method_runs import Features
    from dcdc.metrics.provenance import VECTORS, mark

    if isinstance(images, VectorSet):
        return images, Features(mark({"name": VECTORS}) or "")
    if backbone is None:
        return images, None
    import numpy as np

    from dcdc.cli.progress import watching
    from dcdc.prepare.frozen_features import described_features, frozen_features, require_pretrained

    known = require_pretrained(backbone)
    with watching(quiet=quiet) as observer, observer.counting("computing features") as progress:
        found = frozen_features(images, backbone, n_clusters, device, progress)
    assert isinstance(found.vectors, np.memmap)
    file, n_features = str(found.vectors.filename), found.n_features
    return found, Features(described_features(known), backbone, asdict(known), file, n_features)


def fitting_methods(names: Sequence[str], data: "Data", *, all_of_them: bool) -> list[str]:
    """Of all methods those that take such data; one that was named and does not is refused."""
    from dcdc.methods import METHODS, find_method

    if all_of_them:
        return [name for name in names if find_method(name).fits(data)]
    for name in names:
        try:
            find_method(name).require_fit(data)
        except InputError as error:
            fit = ", ".join(each for each in METHODS.names() if find_method(each).fits(data))
            among = f"choose {{methods}} among {fit}"
            raise InputError(error.problem, remedy=(*error.remedy, among)) from None
    return list(names)


def folder_suffix(backbone: str | None) -> str:
    """Figures on a backbone's features have a folder, and so tables, of their own."""
    return "" if backbone is None else "-" + re.sub(r"[^A-Za-z0-9.]+", "-", backbone).strip("-")
