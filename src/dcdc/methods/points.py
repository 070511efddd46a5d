"""Points of any data: pixels of images, or directions of feature vectors.

Shapes: N images, D numbers each.
"""

import numpy as np
from numpy.typing import NDArray

from dcdc.data import Data, VectorSet
from dcdc.methods.pixels import pixels_of
from dcdc.methods.training_context import directions


def points_of(data: Data) -> NDArray[np.float32]:
    """N x D: pixels from 0 to 1; of feature vectors their directions, centred and of length 1.

    What a feature vector says lies in its direction: its length grows with contrast and size, and
    the mean is what all images share. So K-Means on these is the field's on normalised features.
    """
    if isinstance(data, VectorSet):
        return directions(data.vectors.astype(np.float32))
    return pixels_of(data)


def values_of(data: Data) -> NDArray[np.float32]:
    """N x D: pixels from 0 to 1, or feature vectors as they are."""
    return data.vectors.astype(np.float32) if isinstance(data, VectorSet) else pixels_of(data)
