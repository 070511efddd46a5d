"""`dcdc fit DATA`: train, answer, write the run folder and its report."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.arguments import (
    Clusters,
    Column,
    Quiet,
    Report,
    Settings,
    Sizes,
    Target,
    name_of_source,
    number_of_clusters,
)
from dcdc.cli.faults import stop
from dcdc.cli.fit_regroup import fit_regroup
from dcdc.cli.fit_training import Manner, methods_beside, resume_run, start_run
from dcdc.cli.taking import CopyRunTo, FiftyOne, Lightroom, LinkRunTo, Table, Xmp, read_taking
from dcdc.cli.tensorboard import require_tensorboard
from dcdc.config.typed_values import parse_value
from dcdc.errors import InputError
from dcdc.runtime.launch import job_of, read_launch

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder


def fit(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A folder of images, Parquet, a CSV or text list of paths, .npy, .npz, feature "
            "vectors (.npy, .npz, Parquet, CSV, .safetensors), or a name from dcdc data list. "
            "Without it, --run RUN --clusters 8 groups a finished run anew, and --resume goes on.",
        ),
    ] = None,
    clusters: Clusters = None,
    sizes: Sizes = None,
    outliers: Annotated[
        bool,
        typer.Option("--outliers", help="Images far from every cluster belong to none (-1)."),
    ] = False,
    preset_name: Annotated[
        str | None, typer.Option("--preset", help="Named recipe: see dcdc presets.")
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="Network that makes features: efficientnet-lite0, timm:NAME, hf:NAME, "
            "torchvision:NAME, file:PATH, a name as resnet18, or scratch to train one."
        ),
    ] = None,
    fine_tune: Annotated[
        bool,
        typer.Option("--fine-tune", help="Train the pretrained backbone too; else it is frozen."),
    ] = False,
    epochs: Annotated[int | None, typer.Option(help="Times every head sees every image.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Images per step.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    size: Annotated[int | None, typer.Option(help="Side in pixels to bring images to.")] = None,
    target: Target = None,
    column: Column = None,
    on_bad: Annotated[
        str | None, typer.Option(help="Images that cannot be read: refuse (default) or skip.")
    ] = None,
    run_folder: Annotated[
        Path | None,
        # torchrun takes --run for the beginning of an option of its own, and refuses it
        typer.Option("--run", "--run-folder", help="Run folder; default runs/NAME."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run stopped.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run folder that exists.")
    ] = False,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="TOML file with sections as in config.json.")
    ] = None,
    settings: Settings = None,
    baseline: Annotated[
        list[str] | None, typer.Option(help="Score another method beside, as k-means; repeatable.")
    ] = None,
    copy_to: CopyRunTo = None,
    link_to: LinkRunTo = None,
    table: Table = None,
    xmp: Xmp = None,
    lightroom: Lightroom = False,
    fiftyone: FiftyOne = None,
    report: Report = True,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard event files, too.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the images of DATA and leave everything in a run folder."""
    flags = {
        "n_clusters": number_of_clusters(clusters),
        "sizes": None if sizes is None else parse_value(sizes),
        "outliers": outliers or None,
        "epochs": epochs,
        "batch_size": batch_size,
        "train.device": device,
        "train.seed": seed,
        "data.size": size,
        "data.target": target,
        "data.column": column,
        "data.on_bad": on_bad,
        "network.backbone": backbone,
        "network.frozen": False if fine_tune else None,
        "data.source": data,
    }
    if resume and overwrite:
        raise InputError("--resume and --overwrite exclude each other: choose one")
    taking = read_taking(copy_to, link_to, table, xmp, lightroom, fiftyone)
    if tensorboard:
        require_tensorboard()

    from dcdc.cli.reading import joined_processes
    from dcdc.config import parse_settings, read_toml
    from dcdc.prepare.cluster_number import by_number
    from dcdc.prepare.overrides import Overrides
    from dcdc.prepare.pretrained_choice import from_scratch

    given = {key: value for key, value in flags.items() if value is not None}
    overrides = Overrides(
        given | parse_settings(settings or []),
        preset_name,
        {} if config_file is None else read_toml(config_file),
    )
    plain = by_number(from_scratch(overrides))
    asked = plain.alone()
    source = asked.data.source
    run_path = run_folder or _default_run(source)
    if not resume and not source:
        if run_folder is None or overrides.given.get("n_clusters") is None:
            raise InputError("say what to cluster: dcdc fit DATA (dcdc fit --help)")
        for flag, is_given in (("--baseline", baseline), ("--tensorboard", tensorboard)):
            if is_given:
                raise InputError(f"{flag} has no meaning where a run is grouped anew: leave it out")
        fit_regroup(
            run_folder, overrides, overwrite=overwrite, taking=taking, report=report, quiet=quiet
        )
        return
    methods = methods_beside(baseline or [])
    folder: RunFolder | None = None
    with (
        joined_processes(asked.train.device) as processes,
        ExitStack() as held,
        _telling_what_is_left(run_path, lambda: folder),
    ):
        manner = Manner(quiet, methods, tensorboard, report, processes, taking)

        def claim() -> bool:
            """Takes the folder, before minutes go into reading images; whether its run goes on."""
            nonlocal folder
            goes_on = resume or _is_started_again(run_path, overwrite)
            folder = _claim(run_path, goes_on, overwrite)
            held.enter_context(folder.writing())
            return goes_on

        if processes.broadcast_value(claim):
            resume_run(run_path, plain, folder, manner)
        else:
            start_run(source, run_path, overrides, folder, manner, fine_tune=fine_tune)


@contextmanager
def _telling_what_is_left(
    run_path: Path, folder: "Callable[[], RunFolder | None]"
) -> Iterator[None]:
    """After Ctrl-C where no training is there to be saved."""
    try:
        yield
    except KeyboardInterrupt:
        begun = folder()
        if begun is None or begun.is_new:
            stop("interrupted before training began: no run was written", 130)
        stop(f"interrupted; go on with: dcdc fit --run {run_path} --resume", 130)


def _is_started_again(run_path: Path, overwrite: bool) -> bool:
    """Whether torchrun starts a command anew that has left this run behind."""
    launch = read_launch()
    if not launch.restarts and launch.job is None:
        return False
    from dcdc.run_folder import RunFolder

    folder = RunFolder(run_path)
    if not folder.config_file.is_file():
        return False
    if launch.restarts and not overwrite:
        return True
    # A run that is to be overwritten may be there still.
    return (launch.restarts > 0 or not overwrite) and folder.is_of_job(job_of(launch))


def _claim(run_path: Path, goes_on: bool, overwrite: bool) -> "RunFolder":
    """Another process that is at work there is told before what it has made."""
    from dcdc.run_folder import RunFolder
    from dcdc.runtime.folder_lock import refuse_if_locked

    refuse_if_locked(run_path, ("choose another by {run}",))
    if goes_on:
        folder = RunFolder.open(run_path)
        folder.require_training()
        return folder
    return RunFolder.create(run_path, overwrite=overwrite, job=job_of(read_launch()))


def _default_run(source: str) -> Path:
    if not source:
        raise InputError("say what to cluster (DATA), or which run to go on with (--run FOLDER)")
    return Path("runs") / name_of_source(source)
