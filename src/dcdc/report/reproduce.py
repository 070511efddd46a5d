"""The config as a person would type it, and the command that runs it again."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from dcdc.report.facts import RunFacts

_PLAIN_WORD = re.compile(r"[A-Za-z_][\w-]*")
_READ_AS_VALUES = {"true", "false", "none", "null", "inf", "nan"}


def setting_text(value: Any) -> str:
    """A config value as `--set section.key=value` reads it: TOML, bare words, none."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        parts = (
            json.dumps(part) if isinstance(part, str) else setting_text(part) for part in value
        )
        return f"[{', '.join(parts)}]"
    if isinstance(value, str):
        bare = _PLAIN_WORD.fullmatch(value) and value.lower() not in _READ_AS_VALUES
        return value if bare else json.dumps(value, ensure_ascii=False)
    return str(value)


def config_lines(facts: RunFacts) -> list[str]:
    return [f"{key} = {setting_text(value)}" for key, value in facts.config.items()]


def command(facts: RunFacts) -> str | None:
    """One shell command over several lines; None for a run whose images came from Python.

    Every key is spelled out, so that the command holds whatever presets and defaults become.
    """
    if not facts.source:
        return None
    if "features_of" in facts.metrics:
        return _regrouping(facts)
    settings = [
        f"--set {shlex.quote(f'{key}={setting_text(value)}')}"
        for key, value in facts.config.items()
        if key != "data.source"
    ]
    first = f"dcdc fit {shlex.quote(facts.source)}"
    if refined := facts.metrics.get("refined"):
        first = f"dcdc refine {shlex.quote(refined['source'])}"
        settings = [each for each in settings if each.startswith(("--set refine.", "--set train."))]
    first += f" --run {shlex.quote(str(_beside(facts.path)))}"
    return " \\\n  ".join([first, *settings])


def _regrouping(facts: RunFacts) -> str:
    """Of a run whose backbone another one has trained."""
    run = shlex.quote(str(facts.metrics["features_of"]))
    first = f"dcdc fit --run {run} --clusters {facts.n_clusters}"
    kept = ("sizes", "outliers", "heads.", "network.sub_heads", "train.seed", "train.threads")
    settings = [
        f"--set {shlex.quote(f'{key}={setting_text(value)}')}"
        for key, value in facts.config.items()
        if key.startswith(kept)
    ]
    return " \\\n  ".join([first, *settings])


def _beside(path: Path) -> Path:
    path = path if path.name else path.resolve()
    return path.with_name(f"{path.name}-again")
