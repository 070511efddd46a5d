"""`dcdc predict RUN DATA`: the clusters of new images."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.arguments import Data, DeviceName, OnBad, Quiet, Run, Target
from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.data import ImageSet
    from dcdc.engine.assignment import Assigned


def predict(
    run: Run,
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="File to write, .csv or .parquet; default CSV on stdout.")
    ] = None,
    device: DeviceName = "auto",
    target: Target = None,
    on_bad: OnBad = "refuse",
    quiet: Quiet = False,
) -> None:
    """Assign the images of DATA to the clusters of a finished run."""
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out {out} must end in .csv or .parquet")
    if out is not None and out.exists():
        raise InputError(f"{out} exists: choose another --out")

    from dcdc.cli.joining import joined_processes
    from dcdc.cli.reading import read_images
    from dcdc.run import load
    from dcdc.run_folder import RunFolder

    cluster_names = RunFolder.open(run).read_names()
    with joined_processes(device) as processes:
        model = load(run, device, processes)
        how = {"size": model.size, "target": target, "on_bad": on_bad}
        image_set = read_images(data, processes, **how, quiet=quiet)
        assigned = model.assign(image_set)
    if processes.is_first:
        _write(image_set, assigned, cluster_names, out)


def _write(
    image_set: "ImageSet", assigned: "Assigned", cluster_names: dict[int, str], out: Path | None
) -> None:
    from dcdc.cli.console import say
    from dcdc.run import target_names
    from dcdc.run_folder import write_assignments

    if out is None:
        import csv
        import sys

        writer = csv.writer(sys.stdout, lineterminator="\n")
        named = bool(cluster_names)
        writer.writerow(("name", "cluster", "confidence", "cluster_name")[: 3 + named])
        writer.writerows(
            (name, cluster, f"{confidence:.4f}", cluster_names.get(int(cluster)))[: 3 + named]
            for name, cluster, confidence in zip(
                image_set.names, assigned.assignments, assigned.confidence, strict=True
            )
        )
        return
    write_assignments(
        out,
        image_set.names,
        assigned.assignments,
        assigned.confidence,
        target_names(image_set),
        cluster_names=cluster_names,
    )
    say(f"{image_set.n_images:,} images assigned: {out}")
