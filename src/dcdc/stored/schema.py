"""What a value of JSON may be. A schema is plain data, so that tests can make values from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

LARGEST = 2**63 - 1


class Unfit(Exception):  # noqa: N818 - the reader of the file makes an error of it
    """What is wrong, and the key where it stands."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where} {problem}".strip())
        self.where = where


class Schema(Protocol):
    def check(self, value: Any, where: str) -> None:
        """Raises Unfit."""


@dataclass(frozen=True)
class Anything:
    def check(self, value: Any, where: str) -> None:
        pass


@dataclass(frozen=True)
class Whole:
    least: int = 0
    most: int = LARGEST

    def check(self, value: Any, where: str) -> None:
        told = f"a whole number from {self.least} to {self.most}"
        if self.most == LARGEST:
            told = f"a whole number of at least {self.least}"
        _require(type(value) is int and self.least <= value <= self.most, value, where, told)


@dataclass(frozen=True)
class Number:
    """A finite one: whatever is not is no JSON."""

    def check(self, value: Any, where: str) -> None:
        _require(type(value) in (int, float), value, where, "a number")


@dataclass(frozen=True)
class Text:
    def check(self, value: Any, where: str) -> None:
        _require(isinstance(value, str), value, where, "a text")


@dataclass(frozen=True)
class Flag:
    def check(self, value: Any, where: str) -> None:
        _require(isinstance(value, bool), value, where, "true or false")


@dataclass(frozen=True)
class OneOf:
    values: tuple[Any, ...]

    def check(self, value: Any, where: str) -> None:
        known = any(type(value) is type(each) and value == each for each in self.values)
        _require(known, value, where, " or ".join(map(json.dumps, self.values)))


@dataclass(frozen=True)
class ByKind:
    """An object whose key `kind` says which one it is."""

    kinds: Mapping[str, Schema]

    def check(self, value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "an object")
        OneOf(tuple(self.kinds)).check(value.get("kind"), _inside(where, "kind"))
        self.kinds[value["kind"]].check(value, where)


@dataclass(frozen=True)
class Maybe:
    """Or null."""

    of: Schema

    def check(self, value: Any, where: str) -> None:
        if value is not None:
            self.of.check(value, where)


@dataclass(frozen=True)
class ListOf:
    of: Schema
    length: int | None = None

    def check(self, value: Any, where: str) -> None:
        told = "a list" if self.length is None else f"a list of {self.length}"
        fits = isinstance(value, list) and self.length in (None, len(value))
        _require(fits, value, where, told)
        for number, each in enumerate(value):
            self.of.check(each, f"{where}[{number}]")


@dataclass(frozen=True)
class Row:
    """A list whose places each have their own meaning."""

    of: Sequence[Schema]

    def check(self, value: Any, where: str) -> None:
        fits = isinstance(value, list) and len(value) == len(self.of)
        _require(fits, value, where, f"a list of {len(self.of)}")
        for number, (schema, each) in enumerate(zip(self.of, value, strict=True)):
            schema.check(each, f"{where}[{number}]")


@dataclass(frozen=True)
class MapOf:
    of: Schema

    def check(self, value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "an object")
        for key, each in value.items():
            self.of.check(each, _inside(where, key))


@dataclass(frozen=True)
class Record:
    """An object: keys that it must have, and others that it may. Keys beside these are `others`: a
    later version, or a plugin, may have added them."""

    needed: Mapping[str, Schema]
    known: Mapping[str, Schema] = field(default_factory=dict)
    others: Schema = field(default_factory=Anything)

    def check(self, value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "an object")
        for key in self.needed:
            if key not in value:
                raise Unfit(_inside(where, key), "is missing")
        for key, each in value.items():
            schema = self.needed.get(key) or self.known.get(key) or self.others
            schema.check(each, _inside(where, key))


def _inside(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _require(fits: bool, value: Any, where: str, told: str) -> None:
    if not fits:
        raise Unfit(where, f"is {_shown(value)}, it should be {told}")


def _shown(value: Any) -> str:
    """A few characters of it."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = json.dumps(value[:40] if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
