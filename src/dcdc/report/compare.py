"""Runs side by side: one HTML file with everything inside, and nothing in it that runs or loads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dcdc.errors import InputError
from dcdc.metrics.provenance import short_name
from dcdc.metrics.scores import is_highest
from dcdc.report.affinity_figure import draw_affinities_side_by_side, sorted_affinities
from dcdc.report.facts import RunFacts, RunSample, read_facts, read_sample
from dcdc.report.figures import FEW_DOTS, ROUND_STEPS, Picture, draw_picture, legend_above
from dcdc.report.matching import short
from dcdc.report.page import duration, render
from dcdc.report.reproduce import setting_text
from dcdc.report.themes import DARK, LIGHT, Theme
from dcdc.report.training_figure import SCORES, split_phases
from dcdc.runtime.atomic_files import write_text

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder

_LINES = ("-", "--", ":", "-.")
_NOT_COMPARED = ("data.source", "train.seed")  # told elsewhere on the page


@dataclass(frozen=True)
class MethodScores:
    title: str
    scores: Mapping[str, Sequence[float]]
    """By the keys of SCORES, a value for each seed; empty for what was not scored."""
    published: Mapping[str, float]


def draw_methods(methods: Sequence[MethodScores], theme: Theme) -> Figure:
    """A panel for each score, the methods from above in their order."""
    figure = Figure(figsize=(8.4, 1.2 + 0.26 * len(methods)), layout="constrained")
    panels = figure.subplots(1, len(SCORES), sharey=True)
    places = range(len(methods))
    for axes, (key, name) in zip(panels, SCORES.items(), strict=True):
        seeds = [
            (place, value)
            for place, method in enumerate(methods)
            for value in method.scores.get(key, ())
        ]
        means = [
            sum(values) / len(values) if (values := method.scores.get(key)) else 0.0
            for method in methods
        ]
        published = [
            (place, method.published[key])
            for place, method in enumerate(methods)
            if key in method.published
        ]
        axes.barh(places, means, 0.6, color=theme.colours[0], alpha=0.45, label="mean")
        axes.plot(*_points(seeds), "o", color=theme.colours[0], markersize=4, label="each seed")
        if published:
            axes.plot(
                *_points(published),
                "D",
                color=theme.colours[1],
                fillstyle="none",
                markersize=6,
                label="published",
            )
        axes.set_xlim(left=0)
        axes.set_xlabel(name)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
    panels[0].set_yticks(places, [method.title for method in methods])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=9)
    return figure


def _points(found: Sequence[tuple[int, float]]) -> tuple[list[float], list[int]]:
    """Values along, places down."""
    return [value for _, value in found], [place for place, _ in found]


@dataclass(frozen=True)
class Overview:
    """A table above the runs, in words."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[tuple[str, bool]]]
    """Texts of cells, and whether each is the best of its column."""
    notes: Sequence[str]
    methods: Sequence[MethodScores]
    """For a figure; none where nothing was scored."""
    shown: str
    """What the runs below it are."""
    has_their_scores: bool = False
    """Of one seed: then the runs need not show them again."""


@dataclass(frozen=True, eq=False)
class ComparedRun:
    name: str
    facts: RunFacts
    sample: RunSample | None

    @property
    def sizes(self) -> list[int]:
        """Images of each cluster, largest first."""
        counts = np.bincount(
            self.facts.assignments[self.facts.is_inside], minlength=self.facts.n_clusters
        )
        return sorted(counts.tolist(), reverse=True)


def write_runs(runs: Sequence[ComparedRun], path: Path, overview: Overview | None = None) -> Path:
    """At least two, in the order in which they are shown."""
    methods = overview.methods if overview else ()
    has_history = any(run.facts.history for run in runs)
    columns = [
        *("run", *SCORES.values()),
        *(["features of"] if _is_marked(runs) else []),
        *("images", "clusters", "epochs", "time", "device", "seed"),
    ]
    told = (*SCORES.values(), "time") if overview and overview.has_their_scores else ()
    shown = [at for at, column in enumerate(columns) if column not in told]
    text = render(
        "compare.html",
        runs=runs,
        overview=overview,
        methods=draw_picture(partial(draw_methods, methods)) if methods else None,
        sources=list(dict.fromkeys(run.facts.source or "images from Python" for run in runs)),
        warnings=data_warnings(runs),
        columns=[columns[at] for at in shown],
        rows=[[row[at] for at in shown] for row in table_rows(runs)],
        differences=config_differences(runs),
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


def read_runs(folders: "Sequence[RunFolder]") -> list[ComparedRun]:
    places = [folder.path.resolve() for folder in folders]
    twice = [
        folder.path for number, folder in enumerate(folders) if places[number] in places[:number]
    ]
    if twice:
        raise InputError(f"run {twice[0]} is given twice: name each run once")
    names = [place.name for place in places]
    if len(set(names)) < len(names):
        names = [str(folder.path) for folder in folders]
    return [
        ComparedRun(name, read_facts(folder), read_sample(folder))
        for name, folder in zip(names, folders, strict=True)
    ]


def data_warnings(runs: Sequence[ComparedRun]) -> list[str]:
    """One for each run that was not of the first one's images, or not scored by its classes."""
    first, *others = runs
    found = []
    for run in others:
        ours, theirs = first.facts, run.facts
        between = f"{first.name} and {run.name}"
        if len(ours.names) != len(theirs.names):
            found.append(
                f"{between} are of different data: {len(ours.names):,} and "
                f"{len(theirs.names):,} images."
            )
        elif ours.names != theirs.names:
            found.append(f"{between} are of different data: their images have other names.")
        elif ours.targets is None or theirs.targets is None:
            if ours.targets is not theirs.targets:
                without = run.name if theirs.targets is None else first.name
                found.append(f"{between} are not scored alike: {without} had no targets.")
        elif not np.array_equal(ours.targets, theirs.targets):
            found.append(f"{between} are scored against different classes of the same images.")
        shapes = [each.metrics.get("image_shape") for each in (ours, theirs)]
        if shapes[0] != shapes[1] and None not in shapes:  # feature vectors have none
            found.append(f"{between} saw the images at different sizes.")
        if ours.origin != theirs.origin:
            found.append(
                f"{between} have features of other origin: {_origin(first)}; {_origin(run)}."
            )
    return found


def _origin(run: ComparedRun) -> str:
    return f"{run.name} {run.facts.origin or 'from scratch'}"


def _is_marked(runs: Sequence[ComparedRun]) -> bool:
    return any(run.facts.origin for run in runs)


def table_rows(runs: Sequence[ComparedRun]) -> list[list[tuple[str, bool]]]:
    """Texts of a run's cells, and whether each is the best of its column, among runs whose features
    are of the same origin."""
    by_origin: dict[str | None, list[Mapping[str, float]]] = {}
    for run in runs:
        scores = run.facts.metrics["scores"] or {}
        by_origin.setdefault(run.facts.origin, []).append(scores)
    rows = []
    for run in runs:
        every = by_origin[run.facts.origin]
        column = {key: [scores[key] for scores in every if key in scores] for key in SCORES}
        metrics = run.facts.metrics
        scores = metrics["scores"] or {}
        n_used = sum(size > 0 for size in run.sizes)
        n_clusters = run.facts.n_clusters
        cells = [(run.name, False)]
        for key in SCORES:
            known = key in scores
            best = known and is_highest(scores[key], column[key])
            cells.append((f"{scores[key]:.3f}" if known else "", best))
        others = [short_name(run.facts.backbone)] if _is_marked(runs) else []
        others += [
            f"{metrics['n_images']:,}",
            f"{n_clusters}" + (f" ({n_used} in use)" if n_used < n_clusters else ""),
            "" if metrics["epochs"] is None else str(metrics["epochs"]),
            duration(metrics["training_seconds"]),
            str(metrics["device"]),
            str(metrics["seed"]),
        ]
        rows.append(cells + [(text, False) for text in others])
    return rows


def config_differences(runs: Sequence[ComparedRun]) -> list[tuple[str, list[str]]]:
    """Settings that are not the same in every run, with each run's value as it would be typed."""
    keys = dict.fromkeys(key for run in runs for key in run.facts.config)
    found = []
    for key in keys:
        texts = [
            setting_text(run.facts.config[key]) if key in run.facts.config else "" for run in runs
        ]
        if len(set(texts)) > 1 and key not in _NOT_COMPARED:
            found.append((key, texts))
    return found


def draw_curves(runs: Sequence[ComparedRun], theme: Theme) -> Figure:
    """Scores over epochs where any run has them, else the loss."""
    keys = [key for key in SCORES if any(run.facts.series(key)[0] for run in runs)]
    figure = Figure(figsize=(6.4, 0.3 + 2.4 * (len(keys) or 1)), layout="constrained")
    axes = figure.subplots(len(keys) or 1, sharex=True, squeeze=False)[:, 0]
    # A look is a run's in every figure, so those without a history keep theirs.
    looks = zip(runs, _looks(theme), strict=False)
    trained = [(run, look) for run, look in looks if run.facts.history]
    for panel, key in zip(axes, keys or ["loss"], strict=True):
        for run, (colour, line) in trained:
            _curve(panel, run, key, colour, line)
        panel.set_ylabel(SCORES.get(key, "loss (mean of the epoch)"))
        panel.grid(axis="y")
        panel.set_axisbelow(True)
    axes[-1].set_xlabel("epoch")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND_STEPS))
    _name_runs_above(axes[0], [run for run, _ in trained])
    return figure


def draw_sizes(runs: Sequence[ComparedRun], theme: Theme) -> Figure:
    """A run's clusters from the largest to the smallest, as shares of its images."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for run, (colour, line) in zip(runs, _looks(theme), strict=False):
        shares = np.array(run.sizes) / sum(run.sizes)
        ranks = np.arange(1, len(shares) + 1)
        marker = "o" if len(shares) <= FEW_DOTS else None
        axes.plot(
            ranks, shares, color=colour, linestyle=line, marker=marker, markersize=4, label=run.name
        )
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND_STEPS))
    axes.set_xlabel("rank of the cluster, largest first")
    axes.set_ylabel("share of the images")
    _name_runs_above(axes, runs)
    return figure


def _curve(axes: Axes, run: ComparedRun, key: str, colour: str, line: str) -> None:
    # A curve breaks where the loss becomes another one; scores go on.
    parts = [own for _, own in split_phases(run.facts)] if key == "loss" else [run.facts]
    label: str | None = run.name
    for part in parts:
        epochs, values = part.series(key)
        marker = "o" if len(run.facts.history) <= FEW_DOTS else None
        axes.plot(
            epochs, values, color=colour, linestyle=line, marker=marker, markersize=4, label=label
        )
        label = None


def _looks(theme: Theme) -> Any:
    """Colours and lines, for as many runs as there are."""
    return cycle([(colour, line) for line in _LINES for colour in theme.colours])


def _name_runs_above(axes: Axes, runs: Sequence[ComparedRun]) -> None:
    names = [short(run.name, 40) for run in runs]
    handles, _ = axes.get_legend_handles_labels()
    columns = max(1, min(len(names), int(6 / (0.5 + 0.085 * max(map(len, names))))))
    legend_above(axes, columns, handles, names)


def _affinities(run: ComparedRun) -> Picture | None:
    if run.sample is None:
        return None
    targets = run.facts.targets
    affinities = sorted_affinities(
        run.sample, run.facts.assignments if targets is None else targets, run.facts.partners
    )
    return draw_picture(partial(draw_affinities_side_by_side, affinities, targets is not None))
