"""What a person changes on the page: checked, written to the run folder, and only then shown."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dcdc.engine.cluster_names import tidy_name
from dcdc.engine.edits import Corrected, Edit, Edits, RunAnswers, corrected, joined
from dcdc.errors import InputError
from dcdc.printable import counted
from dcdc.run_folder import RunFolder
from dcdc.stored import files
from dcdc.stored.schema import ListOf, Unfit, Whole

_ROWS = ListOf(Whole())
_PARTS = ListOf(_ROWS)
_KEYS = ("kind", "cluster", "name", "clusters", "into", "to")


class Outdated(InputError):  # noqa: N818 - the page asks again
    """Another page, or a person, has changed the edits meanwhile."""


class Corrections:
    """Of one run. The folder's lock is held for a moment at every change, never in between."""

    def __init__(self, folder: RunFolder, answers: RunAnswers) -> None:
        self.folder, self._answers = folder, answers
        self._alone = threading.Lock()
        self.edits = folder.read_edits(answers)

    def corrected(self) -> Corrected:
        """With every name that is in force."""
        found = corrected(self.edits, self._answers)
        new = {n: name for n, name in found.names.items() if n >= self._answers.n_clusters}
        return replace(found, names=self.folder.read_names() | new)

    def told(self) -> dict[str, Any]:
        """For the page."""
        made = self.edits.made
        return {
            "version": self.edits.version,
            "n_edits": len(made),
            "last_edit": _told(made[-1]) if made else None,
        }

    def make(
        self,
        wish: Mapping[str, Any],
        version: str,
        with_duplicates: Callable[[list[int]], list[int]] = lambda rows: rows,
    ) -> None:
        """Appends an edit, whose images are given by their rows; written when this returns.

        `with_duplicates`: whom a row stands for, where the wish is of all of them."""
        edit = self._edit(wish, with_duplicates if wish.get("duplicates") is True else None)
        names = {}
        if edit["kind"] == "name":
            edit["before"] = self.corrected().names.get(edit["cluster"], "")
            names = {edit["cluster"]: edit["name"]}
        self._change(lambda edits: edits.with_edit(edit, self._answers), names, version)

    def undo(self, version: str) -> None:
        """Takes the last edit back."""
        last = self.edits.made[-1] if self.edits.made else {}
        is_name = last.get("kind") == "name"
        names = {last["cluster"]: last.get("before", "")} if is_name else {}
        self._change(Edits.without_last, names, version)

    def take(self, others: Edits) -> int:
        """Appends what somebody else corrected; how many edits were new. All of them or none."""
        known = self.corrected().names
        n_before = len(self.edits.made)
        more = joined(self.edits, others, self._answers, known).made[n_before:]
        names = {edit["cluster"]: edit["name"] for edit in more if edit["kind"] == "name"}
        if more:
            self._change(lambda edits: replace(edits, made=(*edits.made, *more)), names)
        return len(more)

    def _change(
        self,
        change: Callable[[Edits], Edits],
        names: Mapping[int, str],
        version: str | None = None,
    ) -> None:
        """`names`: what clusters are called from now on, as reports and predictions read it.
        `version`: of the edits that whoever asks has seen; None: those that are known here."""
        wanted = self.edits.version if version is None else version
        own = {n: tidy_name(each, "it") for n, each in names.items()}
        own = {n: each for n, each in own.items() if n < self._answers.n_clusters}
        try:
            with self._alone, self.folder.writing():
                self.edits = self.folder.read_edits(self._answers)
                if self.edits.version != wanted:
                    raise Outdated("the edits were changed elsewhere: look at them again")
                changed = change(self.edits)
                if own:
                    called = self.folder.read_names() | own
                    self.folder.write_names({n: each for n, each in called.items() if each})
                self.folder.write_edits(changed)
                self.edits = changed
        except OSError as error:
            raise InputError(f"it cannot be saved: {error.strerror or error}") from None

    def _edit(
        self, wish: Mapping[str, Any], with_duplicates: Callable[[list[int]], list[int]] | None
    ) -> dict[str, Any]:
        edit: dict[str, Any] = {key: wish[key] for key in _KEYS if key in wish}
        try:
            if "rows" in wish:
                rows = self._rows(wish["rows"], "rows")
                edit["images"] = self._images(with_duplicates(rows) if with_duplicates else rows)
            if "parts" in wish:
                _PARTS.check(wish["parts"], "parts")
                parts = [self._rows(rows, "parts") for rows in wish["parts"]]
                edit["parts"] = [self._images(rows) for rows in parts]
            files.EDITS.checked(Edits("", (edit,)).content)
        except Unfit as error:
            raise InputError(str(error)) from None
        return edit

    def _rows(self, given: Any, where: str) -> list[int]:
        _ROWS.check(given, where)
        rows = sorted(set(given))
        if rows and rows[-1] >= len(self._answers.names):
            raise Unfit(where, f"has {rows[-1]}, of {len(self._answers.names)} images")
        return rows

    def _images(self, rows: list[int]) -> list[list[Any]]:
        return [[row, self._answers.names[row]] for row in rows]


def _told(edit: Edit) -> str:
    images = counted(len(edit.get("images", ())), "image")
    match edit["kind"]:
        case "name":
            return f"name of cluster {edit['cluster']}"
        case "split":
            return f"split of cluster {edit['cluster']} into {len(edit['parts']) + 1}"
        case "merge":
            return f"merge into cluster {edit['into']}"
        case "move":
            return f"move {images} to cluster {edit['to']}"
        case "outside":
            return f"{images} to no cluster"
    return f"{images} {edit['kind']}"
