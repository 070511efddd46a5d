"""Arguments that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Built-in name (digits), a folder of images, or a .npy or .npz file.",
    ),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, such as runs/digits.")]
DeviceName = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
OnBad = Annotated[str, typer.Option("--on-bad", help="Images that cannot be read: refuse or skip.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, results alone.")]
