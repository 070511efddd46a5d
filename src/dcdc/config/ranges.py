"""The range of a setting, declared once, where the setting is: `Annotated[int, Range(1, 100)]`.

What checks a config and `dcdc presets NAME` both read it from there.
"""

import typing
from dataclasses import dataclass, fields
from functools import cache

from dcdc.errors import InputError


@dataclass(frozen=True)
class Range:
    low: float | None = None
    high: float | None = None
    most: int | None = None
    """More than anybody has asked for: what lies beyond is a slip of the hand."""
    above: bool = False
    """Not `low` itself."""
    below: bool = False
    """Not `high` itself."""
    zero: str = ""
    """What 0 means, where it may stand beside the range."""
    unit: str = ""

    def holds(self, value: float) -> bool:
        if self.zero and value == 0:
            return True
        low = self.low
        high = self.high if self.most is None else self.most
        if low is not None and not (value > low if self.above else value >= low):
            return False
        if high is not None and not (value < high if self.below else value <= high):
            return False
        return value - value == 0  # neither infinite nor NaN

    def __str__(self) -> str:
        low, high = (None if end is None else _written(end) for end in (self.low, self.high))
        if self.above:
            text = f"above {low}" + (f", up to {high}" if high else "")
        elif self.below:
            text = f"from {low} to below {high}"
        elif low is None:
            text = "finite" if high is None else f"at most {high}"
        else:
            text = f"at least {low}" if high is None else f"{low} to {high}"
        text += f", up to {self.most:,}" if self.most else ""
        text += f" {self.unit}" if self.unit else ""
        return f"0 ({self.zero}) or {text}" if self.zero else text


SHARE = Range(0, 1)
"""A probability, or a part of a whole."""


def check_ranges(section: str, settings: object) -> None:
    """Refuses the first value outside its range, as `section.key`."""
    kind: type = type(settings)
    for name, allowed in ranges_of(kind).items():
        value = getattr(settings, name)
        values = value if isinstance(value, tuple) else (value,)
        values = tuple(each for each in values if each is not None and not isinstance(each, str))
        if not all(map(allowed.holds, values)):
            each = "each " if isinstance(value, tuple) else ""
            raise InputError(
                f"must be {each}{allowed}", parameter=f"{section}.{name}".lstrip("."), value=value
            )


@cache
def ranges_of(settings: type) -> dict[str, Range]:
    """By the names of the fields that have one."""
    hints = typing.get_type_hints(settings, include_extras=True)
    return {
        field.name: found
        for field in fields(settings)
        for found in typing.get_args(hints[field.name])
        if isinstance(found, Range)
    }


def _written(end: float) -> str:
    if end >= 2**63 - 1:
        return "2^63 - 1"
    return f"{end:,}" if isinstance(end, int) else f"{end:g}"
