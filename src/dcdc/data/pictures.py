"""The images to show of what a run groups, also where it groups their feature vectors.

Shapes: N images, S pixels a side, C channels.
"""

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decoded import decode_listing
from dcdc.data.image_set import ImageSet
from dcdc.data.path_list import list_files
from dcdc.data.vector_set import Data
from dcdc.errors import InputError

SIDE = 96


def pictures_of(data: Data) -> tuple[NDArray[np.uint8] | None, str | None]:
    """N x S x S x C; or none, and why."""
    if isinstance(data, ImageSet):
        return data.images, None
    if data.files is None:
        return None, "The run grouped feature vectors, and nothing tells which images they are of."
    try:
        shown = decode_listing(list_files(data.files), size=SIDE)
    except InputError as fault:
        return None, f"The images of the feature vectors cannot be shown: {fault}."
    return shown.images, None
