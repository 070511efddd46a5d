"""Where a method's run stands, read from its folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dcdc.compare.runs import MethodRun
from dcdc.errors import InputError
from dcdc.run_folder import RunFolder

_ABSENT = "absent"


@dataclass(frozen=True)
class MethodStanding:
    state: Literal["done", "begun", "missing", "other"]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Of a finished run."""
    fault: str = ""
    """Why the state is `other`: the folder holds something else, and is left alone."""


def read_standing(run: MethodRun) -> MethodStanding:
    folder = RunFolder(run.folder)
    if not folder.config_file.exists():
        return MethodStanding("missing")
    try:
        stored = folder.read_config()
        changed = _differences(run.described(), stored)
        if changed:
            raise InputError(
                f"{run.folder} holds a run of something else ({'; '.join(changed)}): move it away, "
                "or choose another --out"
            )
        if not folder.metrics_file.exists():
            return MethodStanding("begun")
        return MethodStanding("done", folder.read_metrics())
    except InputError as error:
        return MethodStanding("other", fault=str(error))


def _differences(
    asked: Mapping[str, Any], stored: Mapping[str, Any], within: str = ""
) -> list[str]:
    found: list[str] = []
    for key in dict.fromkeys((*asked, *stored)):
        new, old = asked.get(key, _ABSENT), stored.get(key, _ABSENT)
        if isinstance(new, dict) and isinstance(old, dict):
            found += _differences(new, old, f"{within}{key}.")
        elif new != old:
            found.append(f"{within}{key} is {new!r}, was {old!r}")
    return found
