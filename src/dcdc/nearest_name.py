"""The known name that somebody may have meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name, or nothing."""
    found = closest(name, known)
    return "" if found is None else f"; did you mean {found!r}?"


def closest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), None)
