"""Names and what they stand for, open to code outside the package.

    BACKBONES.register("my-net", MyNet)

A package that is installed beside dcdc may do so by an entry point of the registry's group instead.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from dcdc.errors import InputError
from dcdc.nearest_name import unknown

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    def __init__(self, what: str, group: str, known: Mapping[str, str]) -> None:
        """`what` is the word for one of them in a message, `group` that of their entry points.
        `known` are the package's own, as "module:name": they are imported when asked for."""
        self.what = what
        self.group = group
        self._addresses = dict(known)
        self._entries: dict[str, Entry] = {}

    def register(self, name: str, entry: Entry) -> Entry:
        """Refuses a name that is taken, unless it is by the same entry."""
        if name in self.names() and self._entries.get(name) is not entry:
            raise InputError(f"there is a {self.what} {name!r} already: choose another name")
        self._entries[name] = entry
        return entry

    def get(self, name: str) -> Entry:
        if name not in self._entries:
            self._entries[name] = self._load(name)
        return self._entries[name]

    def names(self) -> list[str]:
        """The package's own first, in their order."""
        return list(dict.fromkeys([*self._addresses, *self._entries, *self._from_outside()]))

    def _load(self, name: str) -> Entry:
        if name in self._addresses:
            module, _, attribute = self._addresses[name].partition(":")
            entry: Entry = getattr(import_module(module), attribute)
            return entry
        outside = self._from_outside()
        if name not in outside:
            raise InputError(unknown(self.what, name, self.names()))
        loaded: Entry = outside[name].load()
        return loaded

    def _from_outside(self) -> dict[str, Any]:
        return {point.name: point for point in entry_points(group=self.group)}
