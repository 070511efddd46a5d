"""The known name that somebody may have meant."""

import difflib
from collections.abc import Iterable


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """`unknown preset 'digit'; did you mean 'digits'? There are: digits, ...`"""
    names = list(known)
    return f"unknown {what} {name!r}{nearest(name, names) or '.'} There are: {', '.join(names)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name, or nothing."""
    found = closest(name, known)
    return "" if found is None else f"; did you mean {found!r}?"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Whatever its case."""
    by_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.5)
    return by_letters[near[0]] if near else None
