"""Runs side by side: one HTML file with everything inside, and nothing that loads."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markupsafe import Markup

from dcdc.report.affinity_figure import draw_affinities_side_by_side, sorted_affinities
from dcdc.report.compare_curves import draw_curves, draw_losses, draw_sizes
from dcdc.report.compared_runs import (
    ComparedRun,
    config_differences,
    data_warnings,
    method_settings,
    table_columns,
    table_rows,
)
from dcdc.report.confusion_figure import MAX_CLASSES, match
from dcdc.report.disagreement import ShownImages, agreement_of, classes_of, picker_data
from dcdc.report.figures import Picture, draw_picture
from dcdc.report.method_figures import (
    MethodScores,
    draw_agreement,
    draw_confusions,
    draw_methods,
    draw_time_and_quality,
)
from dcdc.report.page_data import as_script
from dcdc.report.rendering import render, script_of
from dcdc.report.themes import DARK, LIGHT
from dcdc.report.training_figure import SCORES
from dcdc.runtime.atomic_files import write_text


@dataclass(frozen=True)
class Overview:
    """Methods above their runs: a table, in words, and what is drawn of all of them together."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[tuple[str, bool]]]
    """Texts of cells, and whether each is the best of its column."""
    notes: Sequence[str]
    methods: Sequence[MethodScores]
    """For figures; none where nothing was scored."""
    runs: str
    """What the runs below it are."""
    has_their_scores: bool = False
    """Of one seed: then the runs need not show them again."""
    faults: Sequence[str] = ()
    """What did not finish, and why."""
    images: ShownImages | None = None
    """Some of the set's: then the page shows where two methods disagree."""


def write_runs(runs: Sequence[ComparedRun], path: Path, overview: Overview | None = None) -> Path:
    """At least two, in the order in which they are shown."""
    columns = table_columns(runs)
    told = (*SCORES.values(), "time") if overview and overview.has_their_scores else ()
    shown = [at for at, column in enumerate(columns) if column not in told]
    has_history = any(run.facts.history for run in runs)
    together = _together(runs, overview) if overview else _Together()
    script = script_of("shared.js", "compare.js") if together.picker else None
    text = render(
        "compare.html",
        runs=runs,
        overview=overview,
        together=together,
        script=script,
        sources=list(dict.fromkeys(run.facts.source or "images from Python" for run in runs)),
        warnings=data_warnings(runs),
        columns=[columns[at] for at in shown],
        rows=[[row[at] for at in shown] for row in table_rows(runs)],
        differences=[] if overview else config_differences(runs),
        settings=[(run.name, method_settings(run)) for run in runs] if overview else [],
        curves=draw_picture(partial(draw_curves, runs)) if has_history else None,
        sizes=draw_picture(partial(draw_sizes, runs)),
        # A run could have a sample; of methods, only some have affinities at all.
        affinities=[
            (run.name, _affinities(run)) for run in runs if run.sample is not None or not overview
        ],
        light=LIGHT,
        dark=DARK,
    )
    write_text(path, text)
    return path


@dataclass(frozen=True)
class _Together:
    """What is drawn of all methods."""

    scores: Picture | None = None
    time: Picture | None = None
    confusions: Picture | None = None
    losses: Picture | None = None
    agreement: Picture | None = None
    picker: Markup | None = None
    """Data of the script by which a person picks two methods."""
    no_images: str | None = None


def _together(runs: Sequence[ComparedRun], overview: Overview) -> _Together:
    methods, classes = overview.methods, classes_of(runs)
    has_times = any(method.seconds is not None for method in methods)
    of_same_images = not data_warnings(runs)
    is_few = of_same_images and classes is not None and len(classes) <= MAX_CLASSES
    confusions = [(run.name, match(run.facts)) for run in runs] if is_few else []
    has_losses = any(run.facts.series("loss")[0] for run in runs)
    agreement, picker, no_images = None, None, None
    if len(runs) > 1 and of_same_images:
        found = agreement_of(runs, classes)
        shares = found.same / len(runs[0].facts.names)
        names = [run.name for run in runs]
        agreement = draw_picture(partial(draw_agreement, names, shares))
        if overview.images is not None:
            picker = as_script(picker_data(runs, classes, found, overview.images))
            no_images = overview.images.why_none
    return _Together(
        draw_picture(partial(draw_methods, methods)) if methods else None,
        draw_picture(partial(draw_time_and_quality, methods)) if has_times else None,
        draw_picture(partial(draw_confusions, confusions)) if confusions else None,
        draw_picture(partial(draw_losses, runs)) if has_losses else None,
        agreement,
        picker,
        no_images,
    )


def _affinities(run: ComparedRun) -> Picture | None:
    if run.sample is None:
        return None
    targets = run.facts.targets
    affinities = sorted_affinities(
        run.sample, run.facts.assignments if targets is None else targets, run.facts.partners
    )
    return draw_picture(partial(draw_affinities_side_by_side, affinities, targets is not None))
