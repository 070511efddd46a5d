"""Learning rate as a pure function of how far training has come: a resume needs no state."""

import math


def learning_rate_factor(schedule: str, epoch: float, epochs: int) -> float:
    """The share of the base rate at `epoch` (fractional) of `epochs`."""
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        progress = epoch / max(epochs, 1e-9)
        return 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    raise ValueError(f"unknown schedule {schedule!r}: constant or cosine")
