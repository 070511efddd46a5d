"""Everything that was measured, and where, for a JSON file."""

import platform
from collections.abc import Sequence
from typing import Any

import torch

from dcdc.bench.rows import Row
from dcdc.bench.session import Session
from dcdc.config import to_mapping
from dcdc.runtime.device import describe_device
from dcdc.runtime.environment import available_cores, own_version


def record(session: Session, rows: Sequence[Row], *, complete: bool) -> dict[str, Any]:
    return {
        "device": describe_device(session.device),
        "cpu_cores": available_cores(),
        "dcdc": own_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "seconds": session.seconds,
        "complete": complete,
        "configs": {case.preset: to_mapping(case.config) for case in session.cases},
        "rows": [row.to_dict() for row in rows],
    }
