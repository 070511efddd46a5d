"""The families of inputs, kills and faults, and how each is carried out and counted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from campaign import (
    cached_rows,
    case,
    disturbed_verbs,
    growth,
    image_files,
    names,
    partial_predictions,
    run_files,
    settings,
    source_files,
    stopped_runs,
    together,
)


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
    few: Callable[[], Iterator[Any]] | None = None
    """For a part in little time, where naming all cases takes long."""

    def begin(self) -> None:
        """Makes what is made once, for several processes that share the cases."""
        for _ in self.cases():
            pass

    def run(
        self,
        *,
        every: int = 1,
        share: tuple[int, int] = (0, 1),
        only: str = "",
        few: bool = False,
    ) -> Found:
        """Of each `every`-th input the `share[0]`-th of `share[1]` parts."""
        found = Found()
        cases = self.few if few and self.few else self.cases
        chosen = [each for each in cases() if not only or each.name == only]
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
        Family("settings", "each setting by wrong values", settings.cases),
        Family("command lines", "each option by wrong texts", settings.command_line_cases),
        Family("names", "hostile names of files and classes, planted links", names.cases),
        Family(
            "kills",
            "a kill before, and a fault at, each file operation of each verb that writes",
            disturbed_verbs.points,
            disturbed_verbs.fault_of,
            "kills and faults",
            few=partial(disturbed_verbs.points, ("fit", "predict with features and copies")),
        ),
        Family("two fits", "at once in one folder", together.two_fits, together.fault_of, "rounds"),
        Family("readers", "beside a fit", together.readers, together.fault_of, "rounds"),
        Family(
            "growth", "of memory and open files", growth.cases, growth.fault_of, "long processes"
        ),
    )
}
