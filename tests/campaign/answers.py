"""What runs and predictions answered, in a form that can be compared: no times, no paths."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors import safe_open

from campaign.process import Ended


def said(folder: Path, ended: Ended) -> str:  # noqa: ARG001
    return ended.out


def file_digest(name: str) -> Any:
    def answer(folder: Path, ended: Ended) -> str:  # noqa: ARG001
        return hashlib.sha256((folder / name).read_bytes()).hexdigest()

    return answer


def of_run(run: Path) -> dict[str, Any]:
    """Everything of a finished run that one seed decides, and the names of its files."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for record in history:
        for key in ("seconds", "checksum"):  # the second is of the first, too
            record.pop(key, None)
    with safe_open(run / "model.safetensors", "numpy") as file:
        weights = {name: file.get_tensor(name).tobytes() for name in sorted(file.keys())}
    config = json.loads((run / "config.json").read_text())
    return {
        "assignments": pq.read_table(run / "assignments.parquet").to_pydict(),
        "history": history,
        "weights": hashlib.sha256(b"".join(weights.values())).hexdigest(),
        "scores": json.loads((run / "metrics.json").read_text())["scores"],
        "n_clusters": config["n_clusters"],
        "files": files_below(run),
    }


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
