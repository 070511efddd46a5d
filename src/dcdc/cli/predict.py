"""`dcdc predict RUN DATA`: the clusters of new images."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcdc.cli.arguments import Column, DeviceName, OnBad, Quiet, Run, Target
from dcdc.cli.console import note, say
from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.cli.taking import CopyTo, LinkTo, read_sorting
from dcdc.errors import InputError
from dcdc.printable import counted

if TYPE_CHECKING:
    from dcdc.data import Skipped
    from dcdc.data.image_stream import ImageStream
    from dcdc.engine.trained_model import TrainedModel
    from dcdc.prediction.session import Predicted
    from dcdc.prediction.sorting import Sorting


def predict(
    run: Run,
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="A folder of images, image files, Parquet, a CSV or text list of paths, .npy, "
            ".npz, feature vectors where the run has them, or a name from dcdc data list.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .csv, .parquet or .jsonl; default CSV on stdout."),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Features of every row of --out, as .npy (N x D float32).")
    ] = None,
    copy_to: CopyTo = None,
    link_to: LinkTo = None,
    outliers: Annotated[
        bool | None,
        typer.Option(
            "--outliers/--no-outliers",
            help="Out-of-distribution images belong to no cluster (-1); default: as in the run.",
        ),
    ] = None,
    device: DeviceName = "auto",
    target: Target = None,
    column: Column = None,
    on_bad: OnBad = "refuse",
    quiet: Quiet = False,
) -> None:
    """Assign the images, or feature vectors, of DATA to the clusters of a finished run.

    Stopped or killed, the same command with --out goes on where it was.
    """
    sorting = read_sorting(copy_to, link_to)
    _check_flags(out, features, copy_to, link_to)

    from dcdc.cli.reading import joined_processes, tell_left_out
    from dcdc.prediction.answers import help_to_answer, images_for
    from dcdc.run import load

    with joined_processes(device) as processes:
        model = load(run, device, processes)
        source = data[0] if len(data) == 1 else [Path(name) for name in data]
        images = images_for(model, source, target=target, column=column, on_bad=on_bad)
        if not processes.is_first:
            help_to_answer(model, images, processes, outliers=outliers)
            return
        tell_left_out(images.left_out)
        if not quiet and images.loses_colour():
            note("some images are in colour, the model sees them in grey, as it was trained")
        how = {"on_bad": on_bad, "outliers": outliers, "processes": processes}
        if out is None:
            _print_rows(model, images, quiet, **how)
            return
        _write(model, images, out, features, sorting, quiet, **how)


def _check_flags(
    out: Path | None, features: Path | None, copy_to: Path | None, link_to: Path | None
) -> None:
    if out is not None:
        from dcdc.prediction.targets import check_names, done_path, refuse_existing, work_path

        check_names(out, features)
        if not work_path(out).exists() and not done_path(out).exists():
            refuse_existing(out, features)
        return
    for flag, path in (("features", features), ("copy-to", copy_to), ("link-to", link_to)):
        if path is not None:
            raise InputError(f"--{flag} needs a table of the rows: say where by --out FILE")


def _print_rows(model: "TrainedModel", images: "ImageStream", quiet: bool, **how: Any) -> None:
    """`how` as `predict_rows` takes it."""
    from dcdc.cli.progress import counting
    from dcdc.cli.reading import tell_skipped
    from dcdc.prediction.answers import predict_rows
    from dcdc.prediction.formats import Csv

    table, done = Csv(), 0
    skipped: list[Skipped] = []
    with counting(quiet=quiet or sys.stdout.isatty()) as progress:
        for rows in predict_rows(model, images, on_skip=skipped.append, **how):
            if not done:
                sys.stdout.buffer.write(table.head(rows.schema))
            sys.stdout.buffer.write(table.piece(rows))
            sys.stdout.buffer.flush()
            done += rows.num_rows
            progress("predicting", done + len(skipped), len(images))
    tell_skipped(skipped)


def _write(
    model: "TrainedModel",
    images: "ImageStream",
    out: Path,
    features: Path | None,
    sorting: "Sorting | None",
    quiet: bool,
    **how: Any,
) -> None:
    """`how` as `predict_to_file` takes it."""
    from dcdc.cli.progress import counting
    from dcdc.prediction.session import PredictionStopped, predict_to_file

    def on_kept(n_kept: int) -> None:
        if not quiet:
            note(f"{n_kept:,} of {len(images):,} images were done before: going on with the rest")

    try:
        with counting(quiet=quiet) as progress:
            predicted = predict_to_file(
                model,
                images,
                out,
                features=features,
                sorting=sorting,
                progress=progress,
                on_kept=on_kept,
                **how,
            )
    except PredictionStopped as stopped:
        stop(str(stopped), SIGNAL_EXIT[stopped.signal])
    _show(predicted, out, features, sorting)


def _show(
    predicted: "Predicted", out: Path, features: Path | None, sorting: "Sorting | None"
) -> None:
    from dcdc.cli.reading import tell_skipped
    from dcdc.prediction.sorting import sorted_line

    if predicted.n_images is None:
        say(f"an earlier start had done all: {out}")
        return
    tell_skipped(predicted.skipped)
    if predicted.n_out_of_distribution is None:
        note(
            "the model keeps no features of its training images (or too few), so no image is told "
            "to be out of distribution"
        )
    n_outside = predicted.n_out_of_distribution
    outside = f", {n_outside:,} out of distribution" if n_outside else ""
    say(f"{counted(predicted.n_images, 'image')} assigned{outside}: {out}")
    if predicted.skipped_file is not None:
        say(f"{counted(len(predicted.skipped), 'image')} skipped: {predicted.skipped_file}")
    if features is not None:
        say(f"features: {features}")
    if sorting is not None and predicted.sorted is not None:
        say(sorted_line(predicted.sorted, sorting))
