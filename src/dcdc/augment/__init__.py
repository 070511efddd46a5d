"""Batched random pixels, on whatever device the batch is on; the generator's seed fixes them.

Every op is a draw (parameters for B images, on the generator's device) and an apply: a pure
function of images and parameters that never waits for the device. Keep it out of autocast.
"""

from dcdc.augment.color import to_float
from dcdc.augment.pipeline import OriginalCopy, PerturbedCopy
from dcdc.augment.strong import StrongCopy

__all__ = ["OriginalCopy", "PerturbedCopy", "StrongCopy", "to_float"]
