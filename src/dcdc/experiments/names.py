"""Readable names for runs, from what differs from their preset."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from dcdc.config import NEUTRAL_KEYS, PHASES, RunConfig, flat, with_values
from dcdc.config.phase_settings import kind_of
from dcdc.report.reproduce import setting_text

_UNNAMED = NEUTRAL_KEYS | {"train.seed", "data.source", "data.target", "data.on_bad"}
"""Not in a name: what cannot change the answer, the seed, which comes last, and the images."""
_WORDS = {
    ("heads.class_weight", 0.0): "sample-view-alone",
    ("heads.sample_weight", 0.0): "class-view-alone",
    ("network.over_clusters", 0): "no-over-clustering",
    ("heads.n_repeats", 1): "no-repeat",
}
_FIRST = (*dict.fromkeys(key for key, _ in _WORDS), "heads.batch_size", "heads.epochs", "epochs")
"""What rows and shorter runs differ in comes first, and is always readable."""
_LONGEST = 80


def changes(config: RunConfig, preset: RunConfig) -> dict[str, Any]:
    """Every value that differs from the preset's, by its `section.key`; in a phase that the preset
    has not, from its defaults."""
    usual = flat(with_values(preset, {"phases": config.phase_names})) | {
        "phases": preset.phase_names
    }
    return {key: value for key, value in flat(config).items() if value != usual[key]}


def run_name(config: RunConfig, preset_name: str, preset: RunConfig) -> str:
    """Such as `paper-batch-size-100-seed-0`; runs that differ in their answer differ in name."""
    recipe = "paper" if preset_name.endswith("-paper") else "own"
    told = name_of(changes(config, preset))
    return "-".join(filter(None, (recipe, told, f"seed-{config.train.seed}")))


def name_of(values: Mapping[str, Any]) -> str:
    """Changes in words; where there are many, a check sum of all but the first."""
    first = [_words(key, values[key]) for key in _FIRST if key in values]
    others = {k: v for k, v in values.items() if k not in _UNNAMED and k not in _FIRST}
    told = "-".join(_words(key, others[key]) for key in sorted(others))
    if len(told) > _LONGEST:
        exact = "\n".join(f"{key}={setting_text(others[key])}" for key in sorted(others))
        told = f"changed-{hashlib.sha256(exact.encode()).hexdigest()[:12]}"
    return "-".join(filter(None, (*first, told)))


def _words(key: str, value: Any) -> str:
    if (key, value) in _WORDS:
        return _WORDS[key, value]
    section, _, name = key.rpartition(".")
    if kind_of(section) in PHASES.names() and section != "heads":
        name = f"{section}-{name}"  # phases share names of keys
    text = f"{name}-{setting_text(value)}"
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
