"""`dcdc export RUN`: a run's model as one file that runs without dcdc."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from dcdc.cli.arguments import Run
from dcdc.cli.console import say
from dcdc.errors import InputError
from dcdc.export import FORMATS
from dcdc.nearest_name import nearest


def export(
    run: Run,
    format_name: Annotated[
        str, typer.Option("--format", help="onnx, or torch for a torch.export program.")
    ] = "onnx",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default model.onnx or .pt2 in RUN.")
    ] = None,
) -> None:
    """Write a run's model, with all that an image needs before it, as one file."""
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
