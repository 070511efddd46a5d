"""Where a run stands, read from its folder: what both verbs ask of every run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from dcdc.errors import InputError
from dcdc.experiments.chosen_epoch import EpochScores
from dcdc.experiments.paper import Published


@dataclass(frozen=True)
class Row:
    """What a table's row shows: runs that differ in their seeds alone."""

    dataset: str
    title: str
    published: Published | None


@dataclass(frozen=True)
class Standing:
    state: Literal["done", "begun", "missing", "other"]
    """other: the folder holds something else, so it is neither shown nor gone on with."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Of a finished run, as in metrics.json."""
    chosen: Mapping[str, EpochScores | None] = field(default_factory=dict)
    """Of a finished run, by criterion."""
    epochs: int = 0
    """Finished so far, where they are counted."""
    source: str = ""
    longer: Path | None = None
    """Folder of the run whose first epochs these are, where it was read from another's."""
    fault: InputError | None = None
    """Why the state is `other`."""


class Run(Protocol):
    @property
    def row(self) -> Row: ...

    @property
    def seed(self) -> int: ...

    @property
    def folder(self) -> Path: ...

    @property
    def epochs(self) -> int | None:
        """Of all its phases; None where they are not counted."""

    def standing(self) -> Standing:
        """Reads the folder."""


def require_same(folder: Path, changed: Mapping[str, tuple[Any, Any]]) -> None:
    """`changed`: what is asked for and what is stored, by key, where they differ."""
    if changed:
        listed = "; ".join(f"{key} is {new!r}, was {old!r}" for key, (new, old) in changed.items())
        raise InputError(
            f"{folder} holds a run of something else ({listed})",
            remedy=("move it away", "choose another {out}"),
        )
