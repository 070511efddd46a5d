"""The families of inputs, kills and faults, and how each is carried out and counted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from campaign import (
    cached_rows,
    case,
    disturbed_verbs,
    image_files,
    partial_predictions,
    run_files,
    source_files,
    stopped_runs,
)
from campaign.ground import ground


@dataclass
class Found:
    n: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    """What went wrong, by the name of the input."""

    @classmethod
    def joined(cls, parts: "Sequence[Found]") -> "Found":
        faults = {name: fault for part in parts for name, fault in part.faults.items()}
        return cls(sum(part.n for part in parts), faults)


@dataclass(frozen=True)
class Family:
    name: str
    what: str
    cases: Callable[[], Iterator[Any]]
    judge: Callable[[Any], str] = case.fault_of
    unit: str = "inputs"
    can_share: bool = True

    def begin(self) -> None:
        ground()

    def run(self, *, every: int = 1, share: tuple[int, int] = (0, 1), only: str = "") -> Found:
        """Of each `every`-th input the `share[0]`-th of `share[1]` parts."""
        found = Found()
        chosen = [each for each in self.cases() if not only or each.name == only]
        for each in chosen[::every][share[0] :: share[1]]:
            found.n += 1
            fault = self.judge(each)
            if fault:
                found.faults[each.name] = fault
                print(f"{self.name}/{each.name}: {fault}", flush=True)
        return found


FAMILIES = {
    family.name: family
    for family in (
        Family("images", "damaged image files of every format", image_files.cases),
        Family("sources", "damaged arrays, tables, lists, benchmark files", source_files.cases),
        Family("decoded cache", "flipped bits and more", cached_rows.decoded_cases),
        Family("features cache", "flipped bits and more", cached_rows.features_cases),
        Family("run files", "damaged files of a run or model folder", run_files.cases),
        Family("checkpoints", "a stopped run with damaged files", stopped_runs.cases),
        Family("predictions", "damaged work of a killed predict", partial_predictions.cases),
        Family(
            "kills",
            "a kill before, and a fault at, each file operation of each verb that writes",
            disturbed_verbs.points,
            disturbed_verbs.fault_of,
            "kills and faults",
        ),
    )
}
