"""`dcdc export RUN`: a run's model as one file, or its answers for other programs."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from dcdc.cli.arguments import Quiet, Run
from dcdc.cli.console import say
from dcdc.cli.taking import (
    CopyRunTo,
    FiftyOne,
    Lightroom,
    LinkRunTo,
    Table,
    Xmp,
    read_taking,
    take_of,
)
from dcdc.errors import InputError
from dcdc.export import FORMATS
from dcdc.nearest_name import nearest

_MODEL = "The model"


def export(
    run: Run,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="onnx, or torch for a torch.export program. Default onnx, where no answers are "
            "asked for.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Default model.onnx or .pt2 in RUN.", rich_help_panel=_MODEL
        ),
    ] = None,
    copy_to: CopyRunTo = None,
    link_to: LinkRunTo = None,
    table: Table = None,
    xmp: Xmp = None,
    lightroom: Lightroom = False,
    fiftyone: FiftyOne = None,
    quiet: Quiet = False,
) -> None:
    """Write a run's answers, as they were corrected, for other programs; or its model, as one file
    with all that an image needs before it."""
    taking = read_taking(copy_to, link_to, table, xmp, lightroom, fiftyone)
    if taking is None or format_name is not None or out is not None:
        _export_model(run, format_name or "onnx", out)
    if taking is not None:
        from dcdc.run_folder import RunFolder

        take_of(RunFolder.open(run), taking, quiet=quiet)


def _export_model(run: Path, format_name: str, out: Path | None) -> None:
    if format_name not in FORMATS:
        raise InputError(
            f"--format {format_name!r} is not one of {', '.join(FORMATS)}"
            f"{nearest(format_name, FORMATS)}"
        )
    suffix = FORMATS[format_name]
    if out is not None and out.suffix != suffix:
        raise InputError(f"--out {out} must end in {suffix} for --format {format_name}")
    if out is not None and out.exists():
        raise InputError(f"{out} exists: choose another --out")

    from dcdc.export.formats import export_onnx, export_torch, require_onnx
    from dcdc.run import load
    from dcdc.run_folder import RunFolder

    if format_name == "onnx":
        require_onnx()
    model = load(run, "cpu")
    path = out or run / f"model{suffix}"
    started = time.perf_counter()
    with nullcontext() if out is not None else RunFolder.open(run).writing():
        found = (export_onnx if format_name == "onnx" else export_torch)(model, path)
    seconds = time.perf_counter() - started
    say(f"exported: {path} ({decimal(path.stat().st_size)}, {seconds:.1f} s)")
    say("the same clusters as the run; probabilities and features (of the largest) off by")
    for each in found:
        differences = f"{each.probabilities:.1e} and {each.features:.1e}"
        say(f"  {differences}, tolerance {each.tolerance:.0e}: {each.n_images} random {each.what}")
