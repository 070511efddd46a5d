"""Batched random pixels, on whatever device the batch is on; the generator's seed fixes them.

Every op is a draw (parameters for B images, on the generator's device) and an apply: a pure
function of images and parameters that never waits for the device. Keep it out of autocast.
"""

from dcdc.augment.affine import Affine, apply_affine, draw_affine
from dcdc.augment.color_jitter import Jitter, apply_jitter, draw_jitter
from dcdc.augment.flip import apply_flip, draw_flip
from dcdc.augment.grey import apply_grey, draw_grey
from dcdc.augment.noise import apply_noise, draw_noise
from dcdc.augment.pipeline import OriginalCopy, PerturbedCopy
from dcdc.augment.resize_crop import apply_centre_crop, apply_resize_crop, draw_resize_crop
from dcdc.augment.resized_crop import apply_resized_crop, draw_resized_crop
from dcdc.augment.to_float import to_float

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
