"""Answers for other programs, written from the page into a folder that a person names.

One export at a time, in a thread of its own; the page asks how far it is.
"""

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcdc.errors import InputError, Words
from dcdc.prediction.run_answers import read_corrected, run_files
from dcdc.prediction.sidecars import Sidecars
from dcdc.prediction.sorting import Sorting
from dcdc.prediction.taking import Taking, check_taking, said, take_away
from dcdc.run_folder import RunFolder
from dcdc.stored.schema import Flag, OneOf, Record, Text, Unfit

_WISH = Record(
    {
        **{"where": Text(), "folders": OneOf(("", "copy", "link"))},
        **dict.fromkeys(("table", "xmp", "lightroom", "fiftyone"), Flag()),
    }
)
_ON_THE_PAGE = Words(lambda _: None, lambda _key, _value: None)


class Exports:
    """Of one run."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._alone = threading.Lock()
        self._thread: threading.Thread | None = None
        self._told: dict[str, Any] = {"is_at_work": False, "says": [], "error": None}

    def told(self) -> dict[str, Any]:
        """How far it is, or what came of it."""
        place = Path.cwd() / f"{self._folder.path.resolve().name}-export"
        return {**self._told, "usual": str(place)}

    def start(self, wish: Any) -> None:
        """Raises InputError for what cannot be, before anything is written."""
        try:
            _WISH.check(wish, "")
        except Unfit as error:
            raise InputError(str(error)) from None
        if not self._alone.acquire(blocking=False):
            raise InputError("another export is at work: wait until it is done")
        try:
            config = self._folder.read_flat_config()
            taking = _taking(wish, str(config.get("data.source") or ""))
            run = read_corrected(self._folder)
            files = run_files(config, run.names) if taking.needs_files else None
            check_taking(taking, files, run.n_clusters)
        except InputError as error:
            self._alone.release()
            raise InputError(error.told(_ON_THE_PAGE)) from None
        except BaseException:
            self._alone.release()
            raise
        self._told = {"is_at_work": True, "says": [], "error": None}

        def work() -> None:
            key = hashlib.sha256(bytes(self._folder.path.resolve())).hexdigest()[:12]
            try:
                taken = take_away(taking, run, files, key=key, progress=self._progress)
                self._told = {"is_at_work": False, "says": said(taking, taken), "error": None}
            except (InputError, OSError) as error:
                told = error.told(_ON_THE_PAGE) if isinstance(error, InputError) else str(error)
                self._told = {"is_at_work": False, "says": [], "error": told}
            finally:
                self._alone.release()

        self._thread = threading.Thread(target=work, name="export", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _progress(self, what: str, done: int, total: int) -> None:
        says = [f"{what}: {done:,} of {total:,}"]
        self._told = {"is_at_work": True, "says": says, "error": None}


def _taking(wish: Mapping[str, Any], source: str) -> Taking:
    text = wish["where"].strip()
    if not text or "\0" in text:
        raise InputError("say into which folder")
    where = Path(text).expanduser().absolute()
    if source and Path(source).is_dir() and where.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(f"{where} lies in {source}, where nothing is written: choose another")
    sorting = None
    if wish["folders"]:
        sorting = Sorting(where / "clusters", by_link=wish["folders"] == "link")
    wanted = Taking(
        sorting,
        table=where / "table.csv" if wish["table"] else None,
        sidecars=Sidecars(where / "xmp", like_lightroom=wish["lightroom"]) if wish["xmp"] else None,
        fiftyone=where / "fiftyone.json" if wish["fiftyone"] else None,
    )
    if wanted == Taking():
        raise InputError("say what to export")
    return wanted
