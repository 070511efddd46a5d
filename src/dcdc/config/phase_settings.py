"""The settings that every phase of a training has, and the kinds of phases there are.

A config names its phases; what a phase does is in `dcdc.phases`, one file each. A file is
imported when a config first names its kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from dcdc.config.ranges import Range, check_ranges
from dcdc.registry import Registry

if TYPE_CHECKING:
    from dcdc.config.run_config import RunConfig

Schedule = Literal["constant", "cosine"]
Copies = Literal["perturbed", "strong"]
BATCH = Range(2, most=1_000_000)
LEARNING_RATE = Range(0, above=True)
TEMPERATURE = Range(0, above=True)
PROJECTION = Range(2, most=65_536)


@dataclass(frozen=True)
class PhaseSettings:
    kind: ClassVar[str]
    """Its name in a config."""
    label: ClassVar[str]
    """Its name in figures and messages."""
    color: ClassVar[str]
    """In figures."""
    is_scored: ClassVar[bool] = True
    """Whether the partition is looked at after its epochs: not where no head has begun."""

    trains_backbone: ClassVar[bool] = True
    """Whether features change in its epochs."""

    reads_vectors: ClassVar[bool] = False
    """Whether it can train on feature vectors, which have no perturbed copies."""

    epochs: Annotated[int, Range(0)] = 0
    """0: the phase is left out."""
    batch_size: Annotated[int | None, BATCH] = None
    """None: that of the phase before."""
    learning_rate: Annotated[float, LEARNING_RATE] = 1e-3
    schedule: Schedule = "constant"

    @property
    def on_features(self) -> bool:
        """Whether it trains the heads alone, on features that are computed once."""
        return False

    def check(self, name: str, config: "RunConfig") -> None:  # noqa: ARG002
        """Refuses the first value that cannot be, as `name.key`, alone or beside others."""
        check_ranges(name, self)


PHASES: Registry[type[PhaseSettings]] = Registry(
    "phase",
    "dcdc.phases",
    {
        "contrast": "dcdc.phases.contrast:Contrast",
        "contrastive_clustering": "dcdc.phases.contrastive_clustering:ContrastiveClustering",
        "byol": "dcdc.phases.byol:Byol",
        "discriminate": "dcdc.phases.discriminate:Discriminate",
        "frozen_heads": "dcdc.phases.frozen_heads:FrozenHeads",
        "heads": "dcdc.phases.heads:Heads",
        "refine": "dcdc.phases.refine:Refine",
        "relate": "dcdc.phases.relate:Relate",
        "self_label": "dcdc.phases.self_label:SelfLabel",
    },
)
"""By kind. A new one: its file in `dcdc/phases`, and a line here; or `PHASES.register`."""


def numbered(kinds: Sequence[str]) -> tuple[str, ...]:
    """What settings call phases: their kind, with a number from the second of a kind on."""
    return tuple(
        f"{kind}-{kinds[: place + 1].count(kind)}" if kind in kinds[:place] else kind
        for place, kind in enumerate(kinds)
    )


def phase_names(phases: Sequence[PhaseSettings]) -> tuple[str, ...]:
    return numbered([phase.kind for phase in phases])


def kind_of(name: str) -> str:
    """`heads` of `heads-2`; a kind may have a dash of its own."""
    kind, _, number = name.rpartition("-")
    return kind if number.isdigit() and kind else name
