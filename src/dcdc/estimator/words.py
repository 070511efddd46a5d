"""What Python callers call parameters: faults that come from below name them here."""

from contextlib import AbstractContextManager
from typing import Any

from dcdc.errors import Words, in_words

_PARAMETERS = {
    "n_clusters": "n_clusters",
    "sizes": "sizes",
    "outliers": "outliers",
    **dict.fromkeys(("epochs", "heads.epochs"), "epochs"),
    **dict.fromkeys(("batch_size", "heads.batch_size"), "batch_size"),
    "train.device": "device",
    "train.seed": "random_state",
    "device": "device",
    "network.backbone": "backbone",
    "network.frozen": "fine_tune",
    "size": 'settings["data.size"]',
    "phases": 'settings["phases"]',
}


def _name(key: str) -> str | None:
    """None: of files and folders, which an estimator has not."""
    return _PARAMETERS.get(key, f'settings["{key}"]' if "." in key else None)


def _given(key: str, value: Any) -> str | None:
    name = _name(key)
    return None if name is None else f"{name}={value!r}"


PYTHON = Words(_name, _given)


def in_python_words() -> AbstractContextManager[None]:
    """Faults name parameters of the estimator."""
    return in_words(PYTHON)
