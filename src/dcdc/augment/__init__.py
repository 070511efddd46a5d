"""Batched random pixels, on whatever device the batch is on; the generator's seed fixes them.

Every op is a draw (parameters for B images, on the generator's device) and an apply: a pure
function of images and parameters that never waits for the device. Keep it out of autocast.
"""

from dcdc.augment.color import (
    Jitter,
    apply_grey,
    apply_jitter,
    apply_noise,
    draw_grey,
    draw_jitter,
    draw_noise,
    to_float,
)
from dcdc.augment.geometry import (
    Affine,
    apply_affine,
    apply_centre_crop,
    apply_flip,
    apply_resize_crop,
    apply_resized_crop,
    draw_affine,
    draw_flip,
    draw_resize_crop,
    draw_resized_crop,
)
from dcdc.augment.pipeline import OriginalCopy, PerturbedCopy

__all__ = [
    "Affine",
    "Jitter",
    "OriginalCopy",
    "PerturbedCopy",
    "apply_affine",
    "apply_centre_crop",
    "apply_flip",
    "apply_grey",
    "apply_jitter",
    "apply_noise",
    "apply_resize_crop",
    "apply_resized_crop",
    "draw_affine",
    "draw_flip",
    "draw_grey",
    "draw_jitter",
    "draw_noise",
    "draw_resize_crop",
    "draw_resized_crop",
    "to_float",
]
