"""What the values of a config must be, alone and beside each other."""

from typing import TYPE_CHECKING, Any

from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.config.run_config import RunConfig


def require(holds: bool, parameter: str, value: Any, wanted: str) -> None:
    if not holds:
        raise InputError(f"must be {wanted}", parameter=parameter, value=value)


def at_least(least: int, parameter: str, value: int | None) -> None:
    require(value is None or value >= least, parameter, value, f"at least {least}")


def above_zero(parameter: str, value: float) -> None:
    require(value > 0, parameter, value, "above 0")


def check_config(config: "RunConfig") -> None:
    """Refuses the first value that breaks a rule."""
    network, train = config.network, config.train
    at_least(2, "n_clusters", config.n_clusters)
    size, n_over = config.data.size, network.over_clusters
    require(size is None or 8 <= size <= 512, "data.size", size, "8 to 512 pixels")
    require(
        n_over == 0 or n_over >= 2,
        "network.over_clusters",
        n_over,
        "0 (no over-clustering head) or at least 2",
    )
    at_least(1, "network.sub_heads", network.sub_heads)
    rate = network.backbone_rate
    require(0 < rate <= 1, "network.backbone_rate", rate, "above 0, up to 1")
    side = network.input_size
    require(side is None or 8 <= side <= 1024, "network.input_size", side, "8 to 1024 pixels")
    for name, phase in zip(config.phase_names, config.phases, strict=True):
        phase.check(name, config)
    _check_first_batch(config)
    at_least(1, "train.evaluate_every", train.evaluate_every)
    at_least(1, "train.checkpoint_every", train.checkpoint_every)
    at_least(1, "train.keep_checkpoints", train.keep_checkpoints)
    at_least(0, "train.threads", train.threads)
    require(0 <= train.seed < 2**63, "train.seed", train.seed, "0 to 2^63 - 1")


def _check_first_batch(config: "RunConfig") -> None:
    """Later phases may take the batch of the one before."""
    for name, phase in zip(config.phase_names, config.phases, strict=True):
        if phase.epochs:
            require(phase.batch_size is not None, f"{name}.batch_size", None, "a number of images")
            return
