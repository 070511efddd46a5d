"""What is measured, and what became of it: a row of the table for each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dcdc.bench.timing import Timing


@dataclass(frozen=True)
class Measured:
    timing: Timing
    images: int = 0
    """Images a call works on; 0: it works on none."""
    copies: int = 0
    """Copies of images that a call makes or trains on, originals among them."""
    peak_gpu_bytes: int | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def per_second(self, count: int) -> float | None:
        return 1000 * count / self.timing.ms if count else None


@dataclass(frozen=True)
class Trial:
    """A measurement to come; it may fail without stopping others."""

    name: str
    measure: Callable[[], Measured]


@dataclass(frozen=True)
class Row:
    part: str
    preset: str | None
    name: str
    measured: Measured | None = None
    not_possible: str | None = None
    """Why, where nothing was measured."""

    def to_dict(self) -> dict[str, Any]:
        """The same keys for every row; None where there is nothing to say."""
        found: dict[str, Any] = dict.fromkeys(_KEYS)
        found |= {"part": self.part, "preset": self.preset, "name": self.name}
        found["not_possible"] = self.not_possible
        measured = self.measured
        if measured is not None:
            found |= measured.timing.to_dict() | {
                "images": measured.images or None,
                "copies": measured.copies or None,
                "images_per_second": measured.per_second(measured.images),
                "copies_per_second": measured.per_second(measured.copies),
                "peak_gpu_bytes": measured.peak_gpu_bytes,
                "details": measured.details,
            }
        return found


_KEYS = (
    *("part", "preset", "name", "not_possible"),
    *("ms", "fastest_ms", "slowest_ms", "spread", "n_blocks", "calls_per_block"),
    *("warm_up_seconds", "images", "copies", "images_per_second", "copies_per_second"),
    *("peak_gpu_bytes", "details"),
)
