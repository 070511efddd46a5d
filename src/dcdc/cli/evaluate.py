"""`dcdc evaluate RUN [DATA]`: ACC, NMI and ARI of a run, on its own images or on others."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dcdc.cli.arguments import Column, DeviceName, OnBad, Quiet, Run, Target
from dcdc.cli.console import print_scores
from dcdc.errors import InputError


def evaluate(
    run: Run,
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="Other images with targets; default the run's own."),
    ] = None,
    device: DeviceName = "auto",
    target: Target = None,
    column: Column = None,
    on_bad: OnBad = "refuse",
    quiet: Quiet = False,
) -> None:
    """Score a run's clusters against the true classes."""
    from dcdc.metrics import score
    from dcdc.metrics.provenance import origin
    from dcdc.run_folder import RunFolder

    if data is None:
        import pyarrow.compute as pc

        folder = RunFolder.open(run)
        table = folder.read_assignments()
        if "target" not in table.column_names:
            raise InputError(
                f"{run} was trained on images without targets: give DATA that has them"
            )
        table = table.filter(pc.greater_equal(table["cluster"], 0))  # below: in no cluster
        scores = score(table["target"].to_pylist(), table["cluster"].to_numpy())
        metrics: Mapping[str, Any] | None = None
        if folder.metrics_file.exists():  # the assignments tell the scores without it
            metrics = folder.read_metrics()
    else:
        from dcdc.cli.reading import joined_processes, read_images
        from dcdc.run import load

        with joined_processes(device) as processes:
            model = load(run, device, processes)
            model.require_own_kind(data, column)
            how: dict[str, Any] = {"target": target, "on_bad": on_bad}
            if model.takes_vectors:
                how |= {"column": column, "may_be_equal": True}
            else:
                how |= {"size": model.size}
            image_set = read_images(data, processes, **how, quiet=quiet)
            if image_set.targets is None:
                raise InputError(
                    f"{data} has no targets to score against: use class sub-folders, --target or "
                    ".npz"
                )
            assigned = model.assign(image_set)
        scores, metrics = score(image_set.targets, assigned.assignments), model.metrics
    print_scores({"DCDC": scores}, origin(metrics))
