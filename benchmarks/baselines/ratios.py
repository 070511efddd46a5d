"""What the rows say when held against each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from baselines import floors, reference, stores
from dcdc.bench import perturbations
from dcdc.bench.timing import Measured, Row, Timing
from dcdc.networks import CLUSTER_HEAD

Found = dict[tuple[str, str | None, str], Measured]
"""By part, preset and name."""


@dataclass(frozen=True)
class Ratio:
    """Of two medians, and what it could be from the fastest and the slowest blocks."""

    preset: str | None
    name: str
    value: float
    lowest: float
    highest: float
    n_blocks: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"n_blocks": list(self.n_blocks)}


def ratios(rows: Iterable[Row]) -> list[Ratio]:
    """Those that the measured rows allow."""
    found: Found = {
        (row.part, row.preset, row.name): row.measured for row in rows if row.measured is not None
    }
    presets = dict.fromkeys(preset for _, preset, _ in found if preset is not None)
    return [
        *(ratio for preset in presets for ratio in _of_steps(preset, found)),
        *_of_copies(found),
        *_of_stores(found),
    ]


def _of_steps(preset: str, found: Found) -> Iterator[Ratio]:
    steps = {
        name: measured
        for (part, of, name), measured in found.items()
        if part == "steps" and of == preset
    }
    ours = (step for step in steps.values() if CLUSTER_HEAD in step.details["heads"])
    if cluster := next(ours, None):
        for title, name in (
            ("reference with its loader / ours", reference.STEP_AND_LOADER),
            ("reference without loading / ours", reference.STEP_ALONE),
        ):
            if theirs := found.get(("reference", preset, name)):
                yield _ratio(preset, title, theirs.timing, cluster.timing)
    for name, step in steps.items():
        for kind in (floors.CONVOLUTIONS, floors.ARITHMETIC):
            if floor := found.get(("floors", preset, floors.floor_name(name, kind))):
                yield _ratio(preset, f"{name} / {kind}", step.timing, floor.timing)


def _of_copies(found: Found) -> Iterator[Ratio]:
    """The time of one copy, so that batches of any size compare."""
    loader = found.get(("reference", perturbations.PRESET, reference.LOADER_ALONE))
    for batch_size in perturbations.BATCH_SIZES:
        eager, captured = (
            found.get(("perturbations", None, perturbations.trial_name(batch_size, way)))
            for way in ("eager", "captured")
        )
        of = f"copies of {batch_size}"
        if loader and eager:
            yield _ratio(None, f"{of}: reference loader / eager", _each(loader), _each(eager))
        if eager and captured:
            yield _ratio(None, f"{of}: eager / captured", _each(eager), _each(captured))


def _of_stores(found: Found) -> Iterator[Ratio]:
    streamed, resident = (found.get(("store", None, n)) for n in (stores.STREAMED, stores.RESIDENT))
    if streamed and resident:
        yield _ratio(None, "streamed / resident batch", streamed.timing, resident.timing)


def _each(measured: Measured) -> Timing:
    return measured.timing.scaled(1 / measured.copies)


def _ratio(preset: str | None, name: str, over: Timing, under: Timing) -> Ratio:
    return Ratio(
        preset,
        name,
        over.ms / under.ms,
        over.fastest_ms / under.slowest_ms,
        over.slowest_ms / under.fastest_ms,
        (over.n_blocks, under.n_blocks),
    )
