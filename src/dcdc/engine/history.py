"""`history.jsonl`: one line per finished epoch, in order, whatever interrupted the run."""

import json
from pathlib import Path
from typing import Any

from dcdc.runtime.atomic_files import write_text

HISTORY = "history.jsonl"


def read_history(path: Path) -> list[dict[str, Any]]:
    """The whole lines; a line cut short by a kill is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def append_history(path: Path, record: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def rewind_history(path: Path, epoch: int) -> None:
    """Drops what comes after `epoch`: a resumed run writes those lines again."""
    kept = [record for record in read_history(path) if record["epoch"] <= epoch]
    write_text(path, "".join(json.dumps(record) + "\n" for record in kept))
