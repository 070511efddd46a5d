"""`--copy-to` and `--link-to`: image files into a folder per cluster, by `fit` as by `predict`."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.console import say
from dcdc.cli.faults import stop
from dcdc.counted import counted
from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.config import DataConfig
    from dcdc.data import Data
    from dcdc.prediction.sorting import Files, Sorted, Sorting
    from dcdc.run_folder import RunFolder

CopyTo = Annotated[
    Path | None, typer.Option(help="Copy every image file into a folder per cluster in here.")
]
LinkTo = Annotated[
    Path | None, typer.Option(help="As --copy-to, but by symbolic links to where files lie.")
]


def read_sorting(copy_to: Path | None, link_to: Path | None) -> "Sorting | None":
    if copy_to is not None and link_to is not None:
        raise InputError("--copy-to and --link-to exclude each other: choose one")
    folder = copy_to or link_to
    if folder is None:
        return None
    from dcdc.prediction.sorting import Sorting

    return Sorting(folder, by_link=link_to is not None)


def tell_sorted(done: "Sorted", sorting: "Sorting") -> None:
    how = "linked" if sorting.by_link else "copied"
    there = f", {done.n_there:,} there already" if done.n_there else ""
    say(f"{counted(done.n_placed, 'file')} {how}{there}: {sorting.folder}")


def check_sorting_of(
    sorting: "Sorting", data: "DataConfig", images: "Data", n_clusters: int
) -> "Files":
    """The files of a run's images; refuses what cannot be sorted before it trains."""
    from dcdc.data import Listing, VectorSet
    from dcdc.data.sources import find_images
    from dcdc.prediction.sorting import NamedFiles, check_sorting, cluster_folders

    files: Files = NamedFiles(data.source, images.names)
    if isinstance(images, VectorSet):
        if images.files is not None:
            files = NamedFiles(data.source, images.names, images.files.__getitem__)
    elif isinstance(listed := find_images(data.source, data.size, data.target), Listing):
        files = listed
    check_sorting(sorting, files, cluster_folders(n_clusters, {}))
    return files


def sort_run(folder: "RunFolder", files: "Files", sorting: "Sorting", *, quiet: bool) -> None:
    """By the answers of a finished run."""
    import numpy as np

    from dcdc.cli.progress import counting
    from dcdc.prediction.sorting import cluster_folders, sort_files

    table = folder.read_assignments()
    cluster_of = dict(zip(table["name"].to_pylist(), table["cluster"].to_pylist(), strict=True))
    n_clusters = int(folder.read_config()["n_clusters"])
    found = np.array([cluster_of.get(name, n_clusters + 1) for name in files.names], np.int32)
    # Those that were not read go nowhere, and outliers have the last folder.
    clusters = np.select([found > n_clusters, found < 0], [-1, n_clusters], found).astype(np.int32)
    key = hashlib.sha256(bytes(folder.path.resolve())).hexdigest()[:12]
    try:
        with counting(quiet=quiet) as progress:
            done = sort_files(
                files,
                clusters,
                cluster_folders(n_clusters, folder.read_names()),
                sorting,
                key=key,
                progress=lambda done, total: progress("sorting files", done, total),
            )
    except KeyboardInterrupt:
        flag = "--link-to" if sorting.by_link else "--copy-to"
        again = f"dcdc fit --run {folder.path} --resume {flag} {sorting.folder}"
        stop(f"interrupted while files were sorted; go on with: {again}", 130)
    tell_sorted(done, sorting)
