"""`FILE.partial/`: what a prediction has done so far, so that whoever stops it loses little.

Parts (rows, clusters, features) grow in step, under a journal. `whole` is there once all rows are,
and from then on parts may leave for their places.
"""

import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dcdc.errors import InputError
from dcdc.runtime.atomic_files import is_leftover, write_text
from dcdc.runtime.folder_lock import LOCK, locked_folder
from dcdc.runtime.journal import JOURNAL, JournaledFolder
from dcdc.stored import files
from dcdc.stored.reading import DamagedFileError

_FORMAT = 1
_WHOLE, TABLE, SKIPPED = files.WHOLE_PREDICTION.name, "table", "skipped"
_OWN_FILES = (JOURNAL, _WHOLE, TABLE, SKIPPED, LOCK, "lock")
"""The last one is the lock of 0.1.0."""


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
        if found is not None and found != self.header:
            raise self._other_meaning(found)
        if not self._is_as_finished():
            (self.path / _WHOLE).unlink(missing_ok=True)
            self.keep(self.n_good_blocks())

    def _is_as_finished(self) -> bool:
        """As far as its parts have not left for their places."""
        try:
            n_blocks = files.WHOLE_PREDICTION.read(self.path / _WHOLE)["n_blocks"]
        except DamagedFileError:  # or not there
            return False
        here = [name for name in ("rows", "clusters") if self.part(name).exists()]
        good = (self.n_good_pieces(name) == n_blocks for name in here)
        return len(self.entries) == n_blocks and all(good)

    def _refuse_other_files(self) -> None:
        for file in self.path.iterdir():
            known = (*_OWN_FILES, *self.heads, "features")
            is_own = file.name in known or is_leftover(file.name)
            if not is_own or not stat.S_ISREG(file.lstat().st_mode):
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
        content = {"n_blocks": len(self.entries)}
        write_text(self.path / _WHOLE, files.WHOLE_PREDICTION.text(content))

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
    folder = WorkFolder(path, heads, meaning)
    with locked_folder(path, ("choose another {out}",), may_nest=False):
        folder.recover()
        try:
            yield folder
        finally:
            if not folder.entries:
                folder.remove()
