"""`FILE.partial/`: what a prediction has done so far, so that whoever stops it loses little.

Parts (rows, clusters, features) grow in step, under a journal. `whole` is there once all rows are,
and from then on parts may leave for their places.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dcdc.errors import InputError
from dcdc.runtime.atomic_files import file_lock, write_text
from dcdc.runtime.journal import JOURNAL, JournaledFolder

_FORMAT = 1
_WHOLE, _LOCK, TABLE, SKIPPED = "whole", "lock", "table", "skipped"
_OWN_FILES = (JOURNAL, _WHOLE, _LOCK, TABLE, SKIPPED)


class WorkFolder(JournaledFolder):
    def __init__(self, path: Path, heads: Mapping[str, bytes], meaning: Mapping[str, str]) -> None:
        """`heads`: what each part begins with. `meaning`: what rows depend on, by a word for it."""
        header = {"format": _FORMAT, "meaning": dict(meaning), "parts": sorted(heads)}
        super().__init__(path, header, heads)

    @property
    def n_out_of_distribution(self) -> int:
        return self.totals["n_out_of_distribution"]

    @property
    def is_whole(self) -> bool:
        return (self.path / _WHOLE).exists()

    def part(self, name: str) -> Path:
        return self.path / name

    def recover(self) -> None:
        """Takes over what an earlier start left, up to the last block that is vouched for."""
        self._refuse_other_files()
        found = self.load()
        if found is None:  # nothing there, or nothing that says what it is
            (self.path / _WHOLE).unlink(missing_ok=True)
        elif found != self.header:
            raise self._other_meaning(found)
        if not self.is_whole:
            self.keep(self.n_good_blocks())

    def _refuse_other_files(self) -> None:
        for file in self.path.iterdir():
            known = (*_OWN_FILES, *self.heads, "features")
            if file.name not in known and not file.match(".*.partial*"):
                raise InputError(
                    f"{self.path} holds {file.name}, which no prediction left there",
                    remedy=("move it away", "choose another {out}"),
                )

    def _other_meaning(self, header: Mapping[str, Any]) -> InputError:
        stored = header.get("meaning")
        known = stored if isinstance(stored, dict) else {}
        other = [word for word, value in self.header["meaning"].items() if known.get(word) != value]
        return InputError(
            f"{self.path} holds rows of an earlier start with "
            f"{' and '.join(other) or 'another dcdc'}",
            remedy=(
                "repeat that command to go on with it",
                "remove the folder to start afresh",
                "choose another {out}",
            ),
        )

    def finish(self) -> None:
        """All rows are there, if nobody has taken them away meanwhile."""
        for name, head in self.heads.items():
            wanted = len(head) + sum(entry.pieces[name][0] for entry in self.entries)
            if not self.part(name).is_file() or self.part(name).stat().st_size != wanted:
                raise self.taken_away()
        write_text(self.path / _WHOLE, "")

    def taken_away(self) -> InputError:
        """What there is of no use goes, too."""
        self.keep(0)
        self.remove()
        return InputError(
            f"{self.path} was removed or changed while a prediction worked in it: leave it alone, "
            "and start again"
        )

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_as(self, done: Path) -> None:
        """The name alone tells that all is done, whoever is killed while the rest goes."""
        try:
            self.path.rename(done)
        except OSError:  # somebody has a folder of that name
            self.remove()
        else:
            remove_done(done)


def remove_done(done: Path) -> None:
    shutil.rmtree(done, ignore_errors=True)


@contextmanager
def opened_work(
    path: Path, heads: Mapping[str, bytes], meaning: Mapping[str, str]
) -> Iterator[WorkFolder]:
    """One process at a time; a folder without a single row is not left behind."""

    def refuse() -> None:
        raise InputError(
            f"another process is working in {path}",
            remedy=("wait for it", "choose another {out}"),
        ) from None

    path.mkdir(parents=True, exist_ok=True)
    folder = WorkFolder(path, heads, meaning)
    is_ours = False
    try:
        with file_lock(path / _LOCK, refuse):
            folder.recover()
            is_ours = True
            yield folder
    finally:
        if is_ours and not folder.entries:
            folder.remove()
