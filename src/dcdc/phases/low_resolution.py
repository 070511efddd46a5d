"""Copies of fewer pixels in the first epochs of features: three quarters of the side are .56 of the
arithmetic of a convolutional backbone.

Progressive resizing: coarse features come first and need few pixels, the last epochs see them all
(Tan and Le, EfficientNetV2, 2021, grow images in the same way).
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor
from torch.nn import functional as F

LOW_RESOLUTION = "low_resolution"
"""Beside a phase's kind, in a pass whose copies are of fewer pixels."""
SHARE_OF_SIDE = 0.75


class FeaturePhase(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def epochs(self) -> int: ...

    @property
    def low_resolution(self) -> float: ...


def pass_of(phase: FeaturePhase, number: int) -> tuple[str, ...]:
    """What epoch `number` of the phase trains, counted from 1."""
    is_low = number <= round(phase.low_resolution * phase.epochs)
    return (phase.kind, LOW_RESOLUTION) if is_low else (phase.kind,)


def copies_of(copies: Tensor, heads: Sequence[str]) -> Tensor:
    """N x C x H x W: as they are, or of fewer pixels where the pass is of low resolution."""
    if LOW_RESOLUTION not in heads:
        return copies
    sides = [max(1, round(SHARE_OF_SIDE * side)) for side in copies.shape[2:]]
    return F.interpolate(copies, sides, mode="bilinear", antialias=True)
