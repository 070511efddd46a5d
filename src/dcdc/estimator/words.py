"""What Python callers call parameters: faults that come from below name them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dcdc.errors import InputError, TrainingError, Words

_PARAMETERS = {
    "n_clusters": "n_clusters",
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


@contextmanager
def in_python_words() -> Iterator[None]:
    """Faults name parameters of the estimator."""
    try:
        yield
    except (InputError, TrainingError) as error:
        raise type(error)(error.told(PYTHON)) from None
