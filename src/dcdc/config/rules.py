"""What the values of a config must be, alone and beside each other."""

from typing import TYPE_CHECKING, Any

from dcdc.config.ranges import check_ranges
from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.config.run_config import RunConfig


_SLACK = 0.01
"""Of the sum of shares, which people round."""


def require(holds: bool, parameter: str, value: Any, wanted: str) -> None:
    if not holds:
        raise InputError(f"must be {wanted}", parameter=parameter, value=value)


def check_config(config: "RunConfig") -> None:
    """Refuses the first value that breaks a rule."""
    check_ranges("", config)
    for section in ("data", "network", "augment", "train"):
        check_ranges(section, getattr(config, section))
    _check_sizes(config)
    for name, phase in zip(config.phase_names, config.phases, strict=True):
        phase.check(name, config)
    _check_first_batch(config)


def _check_sizes(config: "RunConfig") -> None:
    sizes = config.sizes
    if isinstance(sizes, str):
        return
    is_whole = abs(sum(sizes) - 1) < _SLACK
    require(is_whole, "sizes", sizes, "equal, free, or a list of shares that sum to 1")
    if config.n_clusters is not None:
        fits = len(sizes) == config.n_clusters
        require(fits, "sizes", sizes, f"a share for each of the {config.n_clusters} clusters")


def _check_first_batch(config: "RunConfig") -> None:
    """Later phases may take the batch of the one before."""
    for name, phase in zip(config.phase_names, config.phases, strict=True):
        if phase.epochs:
            require(phase.batch_size is not None, f"{name}.batch_size", None, "a number of images")
            return
