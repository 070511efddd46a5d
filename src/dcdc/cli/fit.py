"""`dcdc fit DATA`: train, answer, write the run folder and its report."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcdc.cli.arguments import (
    Clusters,
    Quiet,
    Report,
    Settings,
    Sizes,
    Target,
    name_of_source,
    number_of_clusters,
)
from dcdc.cli.console import note, note_pairs
from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.cli.fit_regroup import fit_regroup
from dcdc.cli.fit_result import show_result
from dcdc.cli.taking import (
    CopyRunTo,
    FiftyOne,
    Lightroom,
    LinkRunTo,
    Table,
    Xmp,
    check_taking_of,
    read_taking,
    take_of,
)
from dcdc.cli.tensorboard import require_tensorboard, writing_events
from dcdc.config.typed_values import parse_value
from dcdc.errors import InputError, Interrupted, PeerLostError
from dcdc.runtime.launch import job_of, read_launch

if TYPE_CHECKING:
    from dcdc.config import DataConfig, RunConfig
    from dcdc.data import Data
    from dcdc.engine.first_epochs import FirstEpochs
    from dcdc.engine.observer import Observer
    from dcdc.methods import Method
    from dcdc.metrics.cluster_number import ClusterNumber
    from dcdc.prediction.taking import Taking
    from dcdc.prepare.cluster_number import FoundNumber, NumberRange
    from dcdc.prepare.duration import Duration
    from dcdc.prepare.overrides import Overrides
    from dcdc.prepare.prepare_run import Prepared
    from dcdc.refining import Begun
    from dcdc.run import Baseline
    from dcdc.run_folder import RunFolder
    from dcdc.runtime.processes import Processes


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
    column: Annotated[
        str | None,
        typer.Option(help="Column or array of feature vectors, where there are several."),
    ] = None,
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
    methods = _methods(baseline or [])
    folder: RunFolder | None = None
    with (
        joined_processes(asked.train.device) as processes,
        ExitStack() as held,
        _telling_what_is_left(run_path, lambda: folder),
    ):
        manner = _Manner(quiet, methods, tensorboard, report, processes, taking)

        def claim() -> bool:
            """Takes the folder, before minutes go into reading images; whether its run goes on."""
            nonlocal folder
            goes_on = resume or _is_started_again(run_path, overwrite)
            folder = _claim(run_path, goes_on, overwrite)
            held.enter_context(folder.writing())
            return goes_on

        if processes.broadcast_value(claim):
            _resume(run_path, plain, folder, manner)
        else:
            _start(source, run_path, overrides, folder, manner, fine_tune=fine_tune)


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


@dataclass(frozen=True)
class _Manner:
    """What changes nothing in the answer."""

    quiet: bool
    methods: "list[Method]"
    """To be scored beside."""
    tensorboard: bool
    report: bool
    processes: "Processes"
    taking: "Taking | None" = None
    """What is left of the answers beside the run folder."""

    def read(self, data: "DataConfig", **how: Any) -> "Data":
        from dcdc.cli.reading import read_configured

        return read_configured(data, self.processes, **how, quiet=self.quiet)


def _start(
    source: str,
    run_path: Path,
    overrides: "Overrides",
    folder: "RunFolder | None",
    manner: "_Manner",
    *,
    fine_tune: bool,
) -> None:
    from dcdc.cli.progress import watching
    from dcdc.cli.recipe_lines import in_words
    from dcdc.prepare.duration import expected_duration
    from dcdc.prepare.prepare_run import prepare_run

    readings = count()

    def read(data: "DataConfig", largest_side: int) -> "Data":
        return manner.read(data, largest_side=largest_side, again=next(readings) > 0)

    def settle(config: "RunConfig", data: "Data", wanted: "NumberRange") -> "FoundNumber":
        from dcdc.number_search import find_number

        with _search(run_path, folder), watching(quiet=manner.quiet) as observer:
            return find_number(config, data, wanted, observer, folder=folder)

    prepared = prepare_run(source, overrides, manner.processes, read=read, find_number=settle)
    _require_fitting(manner.methods, prepared)
    if fine_tune:
        _require_pretrained(prepared.config.network.backbone)
    expected = None
    if folder is not None and not manner.quiet:
        _announce(prepared, manner)
        expected = expected_duration(prepared.config, prepared.images, prepared.first)
    if expected is not None:
        note(f"this takes about {in_words(expected.total)} here")
    _train(
        *(prepared.config, prepared.images, folder, run_path, False, manner),
        *(expected, prepared.number, prepared.first),
    )


def _resume(
    run_path: Path, overrides: "Overrides", folder: "RunFolder | None", manner: "_Manner"
) -> None:
    from dcdc.prepare.overrides import again
    from dcdc.prepare.prepare_run import config_of_first
    from dcdc.refining import Begun, begun
    from dcdc.run import read_config

    def decide() -> "RunConfig":
        assert folder is not None
        return again(read_config(folder), overrides)

    config = config_of_first(manner.processes, decide)
    try:
        images = manner.read(config.data)
    except InputError as error:
        if overrides.alone().data.source:
            raise
        parts = error.parts()
        problem = f"{run_path / 'config.json'} names images that cannot be read: {error.problem}"
        raise type(error)(**{**parts, "problem": problem}) from None
    if folder is not None and read_config(folder).n_clusters is None:
        if overrides.given.get("n_clusters") is not None:
            raise InputError(
                f"{run_path} is still looking for its number of clusters: leave --clusters out, or "
                "start a new run by --run"
            )
        _go_on_searching(config, images, folder, manner)
        return
    learnt = Begun() if folder is None else begun(folder)
    _train(config, images, folder, run_path, True, manner, begun=learnt)


def _go_on_searching(
    config: "RunConfig", images: "Data", folder: "RunFolder", manner: "_Manner"
) -> None:
    from dcdc.cli.progress import watching
    from dcdc.cli.recipe_lines import number_line
    from dcdc.number_search import go_on

    with _search(folder.path, folder), watching(quiet=manner.quiet) as observer:
        config, found = go_on(config, images, folder, observer)
    if not manner.quiet:
        note(number_line(found.number))
    _train(
        *(config, images, folder, folder.path, False, manner),
        *(None, found.number, found.first),
    )


@contextmanager
def _search(run_path: Path, folder: "RunFolder | None") -> Iterator[None]:
    try:
        yield
    except Interrupted as stopped:
        left = "stopped before the number of clusters was found"
        if folder is not None and not folder.is_new:
            left = f"{left}, state saved; go on with: dcdc fit --run {run_path} --resume"
        stop(left, SIGNAL_EXIT[stopped.signal])


def _train(
    config: "RunConfig",
    image_set: "Data",
    folder: "RunFolder | None",
    run_path: Path,
    resume: bool,
    manner: "_Manner",
    expected: "Duration | None" = None,
    number: "ClusterNumber | None" = None,
    first: "FirstEpochs | None" = None,
    begun: "Begun | None" = None,
) -> None:
    """`folder` is of the first process alone."""
    from dcdc.cli.progress import watching
    from dcdc.run import run

    if manner.taking is not None and folder is not None:
        assert config.n_clusters is not None
        check_taking_of(manner.taking, config.data, image_set.names, config.n_clusters)
    try:
        with ExitStack() as watchers:
            shown = watchers.enter_context(watching(quiet=manner.quiet, expected=expected))
            shown.phases = [(name, each.epochs) for name, each in config.active_phases.items()]
            observer: Observer = shown
            if manner.tensorboard and folder is not None:
                earlier = () if first is None else first.history
                observer = watchers.enter_context(writing_events(observer, folder.path, earlier))
            result = run(
                config,
                image_set,
                folder=folder,
                resume=resume,
                observer=observer,
                baselines=_baselines(manner.methods),
                number=number,
                first=first,
                **({} if begun is None else begun._asdict()),
                processes=manner.processes,
            )
    except Interrupted as stopped:
        stop(
            f"{stopped}, state saved; go on with: dcdc fit --run {run_path} --resume",
            SIGNAL_EXIT[stopped.signal],
        )
    except PeerLostError as lost:
        raise PeerLostError(f"{lost}; {_way_on(run_path)}") from lost
    if folder is None:
        return
    report_file = None
    if manner.report:
        from dcdc.report import write_report

        report_file = write_report(folder, image_set)
    show_result(result, folder, report_file)
    if manner.taking is not None:
        take_of(folder, manner.taking, quiet=manner.quiet)


def _way_on(run_path: Path) -> str:
    from dcdc.engine.checkpoints import CHECKPOINTS, list_checkpoints, place_of

    kept = list_checkpoints(run_path / CHECKPOINTS)
    where = f"goes on after epoch {place_of(kept[-1])[0]}" if kept else "begins anew"
    if read_launch().restarts_left:
        return f"torchrun starts the processes again, and the run {where}"
    return f"start the same command again with --resume, and the run {where}"


def _methods(names: list[str]) -> "list[Method]":
    """Refuses an unknown one before anything is read."""
    if not names:
        return []
    from dcdc.methods import find_method

    return [find_method(name) for name in names]


def _require_fitting(methods: "list[Method]", prepared: "Prepared") -> None:
    """Refuses, before minutes go into training, what cannot group features."""
    from dcdc.data import VectorSet
    from dcdc.prepare.resolve import has_stored_features

    for method in methods if has_stored_features(prepared.config.network) else ():
        if VectorSet not in method.kinds():
            raise InputError(
                f"--baseline {method.name} groups images, and this run groups features: choose "
                "k-means, gmm, sc, ac, temi or turtle, or --backbone scratch"
            )


def _require_pretrained(backbone: str) -> None:
    from dcdc.networks import find_backbone

    if find_backbone(backbone).pretrained is None:
        raise InputError(
            f"--fine-tune has no meaning with the backbone {backbone}, which is not pretrained: "
            "leave it out, or name a pretrained one by --backbone"
        )


def _baselines(methods: "list[Method]") -> dict[str, "Baseline"]:
    """By their titles."""

    def answer_of(method: "Method") -> "Baseline":
        return lambda images, n_clusters, seed: method.cluster(images, n_clusters, seed).assignments

    return {method.title: answer_of(method) for method in methods}


def _default_run(source: str) -> Path:
    if not source:
        raise InputError("say what to cluster (DATA), or which run to go on with (--run FOLDER)")
    return Path("runs") / name_of_source(source)


def _announce(prepared: "Prepared", manner: "_Manner") -> None:
    from dcdc.cli.reading import described
    from dcdc.cli.recipe_lines import (
        backbone_lines,
        copies,
        explained,
        length,
        number_line,
    )
    from dcdc.prepare.resolve import main_batch_size

    config, image_set = prepared.config, prepared.images
    if manner.quiet:
        return
    if prepared.passed_over is not None:
        name = prepared.passed_over
        note(f"the {name} recipe is made for a GPU: ask for it by --preset {name}")
    for line in backbone_lines(prepared):
        note(line)
    if manner.processes.size > 1:
        note(f"{manner.processes.size} processes share every batch")
    counts = [described(image_set)]
    extra = getattr(image_set, "extra", None)
    if extra is not None:
        counts.append(f"{len(extra):,} more for the over-clustering head alone")
    if image_set.skipped:
        counts.append(f"{len(image_set.skipped):,} skipped (skipped.csv in the run folder)")
    column = f" (column {config.data.target})" if config.data.target and image_set.n_classes else ""
    counts.append(f"{image_set.n_classes or 'no'} classes to score against{column}")
    note(f"{config.data.source}: {', '.join(counts)}, {config.n_clusters} clusters to find")
    if prepared.number is not None:
        note(number_line(prepared.number))
    if getattr(image_set, "by_folder", False):
        some = ", ".join(image_set.class_names[:3])
        more = ", ..." if len(image_set.class_names) > 3 else ""
        note(f"classes are its sub-folders ({some}{more}), for scores alone; else --target none")
    if prepared.recipe is None:
        note("settings chosen from the images, each with what changes it:")
        note_pairs(explained(config))
    else:
        note(
            f"preset {prepared.recipe}: backbone {config.network.backbone}, batch of "
            f"{main_batch_size(config)}, {copies(config)} of each, {length(config)}, seed "
            f"{config.train.seed}; change with --epochs, --batch-size, --set (dcdc presets "
            f"{prepared.recipe} lists all)"
        )
