"""Runs that are shown side by side: their images, their scores, what differs in their settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dcdc.errors import InputError
from dcdc.metrics.provenance import short_name
from dcdc.metrics.scores import is_highest
from dcdc.report.facts import RunFacts, RunSample, read_facts, read_sample
from dcdc.report.rendering import duration
from dcdc.report.reproduce import setting_text
from dcdc.report.training_figure import SCORES

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder

_NOT_COMPARED = ("data.source", "train.seed")  # told elsewhere on the page
_OF_METHOD = "settings."


@dataclass(frozen=True, eq=False)
class ComparedRun:
    name: str
    facts: RunFacts
    sample: RunSample | None

    @property
    def sizes(self) -> list[int]:
        """Images of each cluster, largest first."""
        inside = self.facts.assignments[self.facts.is_inside]
        counts = np.bincount(inside, minlength=self.facts.n_clusters)
        return sorted(counts.tolist(), reverse=True)


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


def table_columns(runs: Sequence[ComparedRun]) -> list[str]:
    return [
        *("run", *SCORES.values()),
        *(["features of"] if _is_marked(runs) else []),
        *("images", "clusters", "epochs", "time", "device", "seed"),
    ]


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


def method_settings(run: ComparedRun) -> list[tuple[str, str]]:
    """Names and values as they would be typed; without those that are left to the method."""
    found = {
        key.removeprefix(_OF_METHOD): value
        for key, value in run.facts.config.items()
        if key.startswith(_OF_METHOD) and value not in (None, [], ())
    }
    return [(key, setting_text(value)) for key, value in found.items()]
