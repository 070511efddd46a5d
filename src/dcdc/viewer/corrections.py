"""What a person changes on the page: checked, written to the run folder, and only then shown."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dcdc.engine.cluster_names import tidy_name
from dcdc.engine.edits import Corrected, Edit, Edits, RunAnswers, corrected
from dcdc.errors import InputError
from dcdc.run_folder import RunFolder
from dcdc.stored import files
from dcdc.stored.schema import ListOf, Unfit, Whole

_ROWS = ListOf(Whole())
_KEYS = ("kind", "cluster", "name", "clusters", "into", "to")


class Outdated(InputError):  # noqa: N818 - the page asks again
    """Another page, or a person, has changed the edits meanwhile."""


class Corrections:
    """Of one run. The folder's lock is held for a moment at every change, never in between."""

    def __init__(self, folder: RunFolder, answers: RunAnswers) -> None:
        self._folder, self._answers = folder, answers
        self._alone = threading.Lock()
        self.edits = folder.read_edits(answers)

    def corrected(self) -> Corrected:
        """With every name that is in force."""
        found = corrected(self.edits, self._answers)
        new = {n: name for n, name in found.names.items() if n >= self._answers.n_clusters}
        return replace(found, names=self._folder.read_names() | new)

    def told(self) -> dict[str, Any]:
        """For the page."""
        made = self.edits.made
        return {
            "version": self.edits.version,
            "n_edits": len(made),
            "last_edit": _told(made[-1]) if made else None,
        }

    def make(self, wish: Mapping[str, Any], version: str) -> None:
        """Appends an edit, whose images are given by their rows; written when this returns."""
        edit = self._edit(wish)
        if edit["kind"] == "name":
            edit["before"] = self.corrected().names.get(edit["cluster"], "")
            self._change(
                version, lambda edits: edits.with_edit(edit, self._answers), edit, edit["name"]
            )
        else:
            self._change(version, lambda edits: edits.with_edit(edit, self._answers))

    def undo(self, version: str) -> None:
        """Takes the last edit back."""
        last = self.edits.made[-1] if self.edits.made else {}
        if last.get("kind") == "name":
            self._change(version, Edits.without_last, last, last.get("before", ""))
        else:
            self._change(version, Edits.without_last)

    def _change(
        self,
        version: str,
        change: Callable[[Edits], Edits],
        named: Edit | None = None,
        name: str = "",
    ) -> None:
        """`named`: an edit whose cluster is to have `name`, which reports and predictions read."""
        try:
            with self._alone, self._folder.writing():
                self.edits = self._folder.read_edits(self._answers)
                if self.edits.version != version:
                    raise Outdated("the edits were changed elsewhere: look at them again")
                changed = change(self.edits)
                if named is not None and named["cluster"] < self._answers.n_clusters:
                    names = self._folder.read_names() | {named["cluster"]: tidy_name(name, "it")}
                    self._folder.write_names({n: each for n, each in names.items() if each})
                self._folder.write_edits(changed)
                self.edits = changed
        except OSError as error:
            raise InputError(f"it cannot be saved: {error.strerror or error}") from None

    def _edit(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        edit: dict[str, Any] = {key: wish[key] for key in _KEYS if key in wish}
        try:
            if "rows" in wish:
                _ROWS.check(wish["rows"], "rows")
                names = self._answers.names
                rows = sorted(set(wish["rows"]))
                if rows and rows[-1] >= len(names):
                    raise Unfit("rows", f"has {rows[-1]}, of {len(names)} images")
                edit["images"] = [[row, names[row]] for row in rows]
            files.EDITS.checked(Edits("", (edit,)).content)
        except Unfit as error:
            raise InputError(str(error)) from None
        return edit


def _told(edit: Edit) -> str:
    n_images = len(edit.get("images", ()))
    images = "1 image" if n_images == 1 else f"{n_images:,} images"
    match edit["kind"]:
        case "name":
            return f"name of cluster {edit['cluster']}"
        case "merge":
            return f"merge into cluster {edit['into']}"
        case "move":
            return f"move {images} to cluster {edit['to']}"
        case "outside":
            return f"{images} to no cluster"
    return f"{images} {edit['kind']}"
