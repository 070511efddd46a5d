"""Doubly Contrastive Deep Clustering: groups images without labels."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dcdc.errors import InputError, TrainingError
    from dcdc.estimator import DCDC, from_pretrained, load, regroup

# Imported when first asked for: `import dcdc` must not wait for torch.
_HOMES = {
    "DCDC": "dcdc.estimator",
    "InputError": "dcdc.errors",
    "TrainingError": "dcdc.errors",
    "from_pretrained": "dcdc.estimator",
    "load": "dcdc.estimator",
    "regroup": "dcdc.estimator",
}

__all__ = ["DCDC", "InputError", "TrainingError", "from_pretrained", "load", "regroup"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dcdc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
