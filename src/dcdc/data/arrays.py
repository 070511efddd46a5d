"""Images that are arrays already: in memory, `.npy` or `.npz`.

Shapes: N x H x W, N x H x W x C or N x C x H x W come in (C is 1 or 3), N x S x S x C goes out.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.data.decode import square_images
from dcdc.data.fingerprint import file_fingerprint
from dcdc.data.image_set import MIN_SIDE, ImageSet, check_side, numbered_names
from dcdc.data.mapped import slices_within
from dcdc.data.row_cache import Block, RowSource, cached_rows
from dcdc.errors import InputError
from dcdc.labels import encode_targets
from dcdc.stored.reading import require_regular

IMAGE_KEYS = ("images", "x", "data", "arr_0")
TARGET_KEYS = ("targets", "labels", "label", "y")
MAP_ABOVE_BYTES = 64 * 2**20  # smaller files are read, so that they may change on disk meanwhile
_BLOCK_BYTES = 32 * 2**20


def from_arrays(
    images: ArrayLike,
    targets: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    where: str = "images",
    size: int | None = None,
) -> ImageSet:
    """An ImageSet from arrays; `where` names them in error messages.

    uint8 is kept without a copy. Other integers must lie in 0..255; floats in [0, 1] are scaled
    by 255, floats in [0, 255] rounded; booleans become 0 and 255. Images that are not square are
    cropped around their centre to the shorter side; `size` then resizes them.
    """
    check_side(size)
    try:
        array = np.asarray(images)
    except ValueError:
        raise InputError(
            f"{where} cannot be read as one array: give images of equal size"
        ) from None
    array = _channels_last(array, where)
    n_images, side = len(array), min(array.shape[1:3])
    if (size or side) < MIN_SIDE:
        raise InputError(
            f"{where} has images of {array.shape[1]} x {array.shape[2]} pixels: they must be at "
            f"least {MIN_SIDE} x {MIN_SIDE}; give a size to enlarge them"
        )
    if names is not None and len(names) != n_images:
        raise InputError(f"{where} has {n_images} images but {len(names)} names: give one for each")
    codes: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    if targets is not None:
        codes, class_names = encode_targets(targets, f"the targets of {where}")
        if len(codes) != n_images:
            raise InputError(
                f"{where} has {n_images} images but {len(codes)} targets: give one for each"
            )
    return ImageSet(
        images=square_images(_as_bytes(array, where), size or side),
        names=names if names is not None else numbered_names("image", n_images),
        targets=codes,
        class_names=class_names,
    )


def load_array_file(path: Path, size: int | None = None) -> ImageSet:
    """A `.npy` of images, or an `.npz` of images and perhaps targets; big `.npy` are mapped."""
    check_side(size)
    images, targets = _read(path)
    if isinstance(images, np.memmap):
        images = _mapped_as_asked(images, path, size)
    return from_arrays(images, targets, where=str(path), size=size)


def _mapped_as_asked(images: NDArray[Any], path: Path, size: int | None) -> NDArray[Any]:
    """A mapped array that must be converted or resized goes through the row cache, piecewise."""
    array = _channels_last(images, str(path))
    side, channels = size or min(array.shape[1:3]), array.shape[3]
    if array.dtype == np.uint8 and side == min(array.shape[1:3]):
        return array
    scale = _byte_scale(array, str(path))

    def blocks(start: int) -> Iterator[Block]:
        for piece in slices_within(array, _BLOCK_BYTES, start):
            pixels = square_images(_to_bytes(array[piece], scale), side)
            yield Block(pixels, n_read=len(pixels))

    source = RowSource(
        key=f"{file_fingerprint(path)[:24]}-{side}",
        n_rows=len(array),
        shape=(side, side, channels),
        blocks=blocks,
    )
    return cached_rows(source).images


def _read(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    with opened_numpy(path, "images") as loaded:
        if isinstance(loaded, np.ndarray):
            return (loaded if loaded.nbytes > MAP_ABOVE_BYTES else np.array(loaded)), None
        image_key = next((key for key in IMAGE_KEYS if key in loaded), None)
        if image_key is None:
            raise InputError(
                f"{path} holds {', '.join(loaded) or 'no array'}: name the images "
                f"{', '.join(IMAGE_KEYS[:-1])} or {IMAGE_KEYS[-1]}"
            )
        target_key = next((key for key in TARGET_KEYS if key in loaded), None)
        return loaded[image_key], None if target_key is None else loaded[target_key]


@contextmanager
def opened_numpy(path: Path, what: str) -> Iterator[Any]:
    """A mapped array, or an archive of arrays; faults of the file become one line, also those of
    reading it in the block. Nothing pickled is ever loaded."""
    try:
        with require_regular(path).open("rb") as file:
            magic = file.read(6)
        if magic != b"\x93NUMPY" and not magic.startswith(b"PK"):
            raise InputError(f"{path} is not a NumPy file: write it with numpy.save or numpy.savez")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a damaged header that overflows
            loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        with nullcontext(loaded) if isinstance(loaded, np.ndarray) else loaded:
            yield loaded
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path} does not fit in memory: save the {what} as .npy") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # whatever a damaged file makes the parsers raise
        if "object" in str(error).lower():
            reason = "holds pickled Python objects, which are never loaded"
        else:
            reason = f"is damaged or cut short ({' '.join(str(error).split())})"
        raise InputError(f"{path} {reason}: save a plain numeric array again") from None


def _channels_last(array: NDArray[Any], where: str) -> NDArray[Any]:
    shape = array.shape
    if array.ndim not in (3, 4):
        raise InputError(
            f"{where} has shape {shape}: give N x H x W, N x H x W x C or N x C x H x W, or "
            "feature vectors, N x D"
        )
    if 0 in shape:
        raise InputError(f"{where} has shape {shape}, which holds no image: give at least one")
    if array.ndim == 3:
        if shape[2] in (1, 3, 4) and min(shape[:2]) >= MIN_SIDE:
            raise InputError(
                f"{where} has shape {shape}, which looks like one image: give images[None]"
            )
        return array[..., None]
    if shape[3] in (1, 3):
        return array
    if shape[1] in (1, 3):
        return array.transpose(0, 2, 3, 1)
    if 4 in (shape[1], shape[3]):
        raise InputError(
            f"{where} has shape {shape}, 4 channels: drop the alpha channel, for example "
            f"{'images[..., :3]' if shape[3] == 4 else 'images[:, :3]'}"
        )
    raise InputError(
        f"{where} has shape {shape}: the first or last axis of an image must be 1 or 3"
    )


def _as_bytes(images: NDArray[Any], where: str) -> NDArray[np.uint8]:
    """N x H x W x C of any numeric type -> the same in uint8."""
    scale = _byte_scale(images, where)
    if images.dtype == np.uint8:
        return images
    converted = np.empty(images.shape, np.uint8)
    for block in slices_within(images, _BLOCK_BYTES):
        converted[block] = _to_bytes(images[block], scale)
    return converted


def _to_bytes(images: NDArray[Any], scale: int) -> NDArray[np.uint8]:
    if images.dtype == np.uint8:
        return images
    return np.rint(images.astype(np.float64) * scale).astype(np.uint8)


def _byte_scale(images: NDArray[Any], where: str) -> int:
    """What brings the values to 0..255."""
    kind = images.dtype.kind
    if images.dtype == np.uint8:
        return 1
    if kind not in "biuf":
        raise InputError(f"{where} has type {images.dtype}: give uint8, integers or floats")
    low, high = _value_range(images, where)
    if low < 0 or high > 255:
        raise InputError(
            f"{where} has values from {low:g} to {high:g}: scale them to 0..255, or floats to 0..1"
        )
    if kind == "f" and 1 < high < 2:  # as 0..255 these would be black images
        raise InputError(
            f"{where} has float values up to {high:g}, just above 1: clip them to 0..1 "
            "or scale them to 0..255"
        )
    return 255 if kind == "b" or (kind == "f" and high <= 1) else 1


def _value_range(images: NDArray[Any], where: str) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for block in slices_within(images, _BLOCK_BYTES):
        values = images[block]
        bad = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2, 3)))
        if len(bad):
            raise InputError(
                f"{where} has NaN or infinite values, first in image {block.start + bad[0]}: "
                "replace them or leave that image out"
            )
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high
