"""`history.jsonl`: one line per finished epoch, in order, whatever interrupted the run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dcdc.runtime.atomic_files import write_text
from dcdc.stored import files

HISTORY = files.HISTORY.name


def read_history(path: Path) -> list[dict[str, Any]]:
    """The whole lines; a line cut short by a kill is left out."""
    return files.HISTORY.lines(path) if path.exists() else []


def append_history(path: Path, record: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(files.HISTORY.text(record))


def write_history(path: Path, records: Iterable[dict[str, Any]]) -> None:
    write_text(path, "".join(map(files.HISTORY.text, records)))


def rewind_history(path: Path, epoch: int) -> None:
    """Drops what comes after `epoch`: a resumed run writes those lines again."""
    write_history(path, [record for record in read_history(path) if record["epoch"] <= epoch])
