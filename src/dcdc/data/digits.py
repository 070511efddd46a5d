"""scikit-learn's handwritten digits: 1,797 grey images of 8 x 8 pixels, without a download."""

import numpy as np

from dcdc.data.arrays import from_arrays
from dcdc.data.image_set import ImageSet, numbered_names


def load_digits(size: int | None = None) -> ImageSet:
    """The set at 8 x 8, or resized; grey values 0..16 are stretched to 0..255."""
    from sklearn import datasets  # half a second that no other source needs

    bunch = datasets.load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    names = numbered_names("digit", len(images))
    return from_arrays(images, bunch.target, names, where="digits", size=size)
