"""Sources of images and of feature vectors, and the sets they become.

The torch side, `dcdc.data.store`, is imported from its own file, so that listing data sets does not
wait for torch.
"""

from dcdc.data.arrays import from_arrays, load_array_file
from dcdc.data.decode import decode_image
from dcdc.data.decoded import decode_listing
from dcdc.data.folder import IMAGE_EXTENSIONS
from dcdc.data.image_set import ImageSet, Skipped, channel_statistics
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.load_data import load_data
from dcdc.data.path_list import list_files
from dcdc.data.sources import (
    BUILT_IN,
    SOURCES,
    Source,
    built_in_name,
    label_column_of,
    label_columns,
    load_digits,
    load_images,
)
from dcdc.data.vector_arrays import from_vectors
from dcdc.data.vector_set import Data, VectorSet
from dcdc.labels import encode_targets

__all__ = [
    "BUILT_IN",
    "IMAGE_EXTENSIONS",
    "SOURCES",
    "BadImage",
    "Data",
    "Encoded",
    "ImageSet",
    "Listing",
    "Skipped",
    "Source",
    "VectorSet",
    "built_in_name",
    "channel_statistics",
    "decode_image",
    "decode_listing",
    "encode_targets",
    "from_arrays",
    "from_vectors",
    "label_column_of",
    "label_columns",
    "list_files",
    "load_array_file",
    "load_data",
    "load_digits",
    "load_images",
]
