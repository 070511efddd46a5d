"""Everything that was measured, and where, as one JSON file."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import PIL
import torch

from dcdc.bench.ratios import ratios
from dcdc.bench.rows import Row
from dcdc.bench.session import Session
from dcdc.config import to_mapping
from dcdc.runtime.atomic_files import write_text
from dcdc.runtime.cores import available_cores
from dcdc.runtime.device import describe_device
from dcdc.runtime.version import own_version


def write_record(path: Path, session: Session, rows: Sequence[Row], *, complete: bool) -> None:
    write_text(path, json.dumps(record(session, rows, complete=complete), indent=1) + "\n")


def record(session: Session, rows: Sequence[Row], *, complete: bool) -> dict[str, Any]:
    return {
        "device": describe_device(session.device),
        "cpu_cores": available_cores(),
        "dcdc": own_version(),
        "torch": torch.__version__,
        "pillow": PIL.__version__,
        "python": platform.python_version(),
        "seconds": session.seconds,
        "n_workers": session.n_workers,
        "complete": complete,
        "configs": {case.preset: to_mapping(case.config) for case in session.cases},
        "rows": [row.to_dict() for row in rows],
        "ratios": [ratio.to_dict() for ratio in ratios(rows)],
    }
