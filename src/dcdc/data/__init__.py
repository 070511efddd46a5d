"""Sources of images, the set they become, and the batches that training draws from it."""

from dcdc.data.arrays import from_arrays, load_array_file
from dcdc.data.decode import decode_image
from dcdc.data.digits import load_digits
from dcdc.data.folder import IMAGE_EXTENSIONS, load_folder
from dcdc.data.image_set import ImageSet, Skipped
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.order import epoch_batches
from dcdc.data.sources import BUILT_IN, load_images
from dcdc.data.store import DeviceStore
from dcdc.data.targets import encode_targets

__all__ = [
    "BUILT_IN",
    "IMAGE_EXTENSIONS",
    "BadImage",
    "DeviceStore",
    "Encoded",
    "ImageSet",
    "Listing",
    "Skipped",
    "decode_image",
    "encode_targets",
    "epoch_batches",
    "from_arrays",
    "load_array_file",
    "load_digits",
    "load_folder",
    "load_images",
]
