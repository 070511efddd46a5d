"""What `dcdc fit` does once its command is understood: a run begins or goes on, and is shown."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcdc.cli.console import note
from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.cli.fit_result import show_result
from dcdc.cli.taking import check_taking_of, take_of
from dcdc.cli.tensorboard import writing_events
from dcdc.errors import InputError, Interrupted, PeerLostError
from dcdc.runtime.launch import read_launch

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


@dataclass(frozen=True)
class Manner:
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


def start_run(
    source: str,
    run_path: Path,
    overrides: "Overrides",
    folder: "RunFolder | None",
    manner: Manner,
    *,
    fine_tune: bool,
) -> None:
    from dcdc.cli.progress import watching
    from dcdc.cli.recipe_lines import announce, in_words
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
    require_fitting(manner.methods, prepared)
    if fine_tune:
        _require_pretrained(prepared.config.network.backbone)
    expected = None
    if folder is not None and not manner.quiet:
        announce(prepared, manner.processes.size)
        expected = expected_duration(prepared.config, prepared.images, prepared.first)
    if expected is not None:
        note(f"this takes about {in_words(expected.total)} here")
    _train(
        *(prepared.config, prepared.images, folder, run_path, False, manner),
        *(expected, prepared.number, prepared.first),
    )


def resume_run(
    run_path: Path, overrides: "Overrides", folder: "RunFolder | None", manner: Manner
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
    config: "RunConfig", images: "Data", folder: "RunFolder", manner: Manner
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
    manner: Manner,
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
                baselines=baselines_of(manner.methods),
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
        from dcdc.engine.device_t_sne import t_sne_on
        from dcdc.report import write_report

        report_file = write_report(folder, image_set, t_sne=t_sne_on(result.model.device))
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


def _require_pretrained(backbone: str) -> None:
    from dcdc.networks import find_backbone

    if find_backbone(backbone).pretrained is None:
        raise InputError(
            f"--fine-tune has no meaning with the backbone {backbone}, which is not pretrained: "
            "leave it out, or name a pretrained one by --backbone"
        )


def methods_beside(names: list[str]) -> "list[Method]":
    """Refuses an unknown one before anything is read."""
    if not names:
        return []
    from dcdc.methods import find_method

    return [find_method(name) for name in names]


def require_fitting(methods: "list[Method]", prepared: "Prepared") -> None:
    """Refuses, before minutes go into training, what cannot group features."""
    from dcdc.data import VectorSet
    from dcdc.prepare.resolve import has_stored_features

    for method in methods if has_stored_features(prepared.config.network) else ():
        if VectorSet not in method.kinds():
            raise InputError(
                f"--baseline {method.name} groups images, and this run groups features: choose "
                "k-means, gmm, sc, ac, temi or turtle, or --backbone scratch"
            )


def baselines_of(methods: "list[Method]") -> dict[str, "Baseline"]:
    """By their titles."""

    def answer_of(method: "Method") -> "Baseline":
        return lambda images, n_clusters, seed: method.cluster(images, n_clusters, seed).assignments

    return {method.title: answer_of(method) for method in methods}
