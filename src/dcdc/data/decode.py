"""One encoded image -> pixels: size x size, 1 or 3 channels, uint8.

EXIF orientation is applied, transparency is laid on white, 16-bit grey is scaled (not clipped),
palette, 1-bit and CMYK are converted, and of several frames the first counts. The shorter side
becomes `size`, and the centre is kept.
"""

import ctypes
import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import AvifImagePlugin, ExifTags, Image, ImageFile, UnidentifiedImageError

from dcdc.data import heic
from dcdc.data.listing import BadImage

# Pillow is told what may come: others of its readers start programs (EPS) or read other files.
_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "TIFF", "GIF", "BMP")
_GREY_MODES = ("1", "L", "LA", "La", "I", "F")
_THINNEST = 1000  # of a strip that is longer than so many times its width, a square shows nothing
_REDUCING_GAP = 3  # how much bigger than `size` a cheap first reduction may leave an image
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
Source = Path | bytes | BinaryIO
_TIFF_HANDLERS = ("TIFFSetErrorHandler", "TIFFSetErrorHandlerExt", "TIFFSetWarningHandler")
_MAPS = Path("/proc/self/maps")


@dataclass(frozen=True)
class Header:
    """What an image file says of itself before it is decoded."""

    size: tuple[int, int]
    """Width and height."""
    is_grey: bool
    format: str
    """As Pillow calls it."""

    @property
    def shorter_side(self) -> int:
        return min(self.size)


def read_header(source: Source) -> Header:
    with opened_image(source) as image:
        is_grey = image.mode in _GREY_MODES or image.mode.startswith("I;16")
        return Header(image.size, is_grey, image.format or "")


def decode_image(source: Source, size: int, channels: int) -> NDArray[np.uint8]:
    """size x size x channels; raises BadImage."""
    with opened_image(source) as image:
        square = _squared(upright_pixels(image, "L" if channels == 1 else "RGB", size), size)
        return np.asarray(square).reshape(size, size, channels)


def upright_pixels(image: ImageFile.ImageFile, mode: str, size: int | None = None) -> Image.Image:
    """An opened image in 8 bits, upright and on white; where a shorter side of `size` is enough, a
    big JPEG is decoded at a fraction of its size."""
    if size is not None:
        image.draft(image.mode, (size * _REDUCING_GAP, size * _REDUCING_GAP))
    frame = image.tile[0].extents if image.format == "GIF" and image.tile else None
    image.load()
    upright = _turned_upright(image if frame is None else _on_clear_canvas(image, frame))
    flat = _on_white(_eight_bit(upright))
    return flat if flat.mode == mode else flat.convert(mode)


def square_images(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """N x H x W x C -> N x size x size x C, as files are; a view where a crop is enough."""
    n_images, height, width, channels = images.shape
    side = min(height, width)
    if side == size:
        top, left = (height - side) // 2, (width - side) // 2
        return images[:, top : top + side, left : left + side]
    squared = np.empty((n_images, size, size, channels), np.uint8)
    for row, pixels in zip(squared, images, strict=True):
        image = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if channels == 1 else pixels))
        row[:] = np.asarray(_squared(image, size)).reshape(size, size, channels)
    return squared


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Silence Pillow and libtiff, whose faults are raised as BadImage, and threads per image.

    Enter it outside a thread pool: all of this belongs to the whole process.
    """
    quiet_libtiff()
    logger, silence = logging.getLogger("PIL"), logging.NullHandler()
    avif_threads = AvifImagePlugin.DEFAULT_MAX_THREADS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        logger.addHandler(silence)
        AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # starting more costs a small image three times
        try:
            yield
        finally:
            AvifImagePlugin.DEFAULT_MAX_THREADS = avif_threads
            logger.removeHandler(silence)


@contextmanager
def opened_image(source: Source) -> Iterator[ImageFile.ImageFile]:
    """Its header is read, and of a format that is known here; BadImage, also within the block."""
    try:
        if isinstance(source, Path) and not source.is_file():
            raise BadImage("not a file, or a link that leads nowhere")  # a pipe would wait for ever
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        with Image.open(file, formats=(*_FORMATS, *heic.formats())) as image:
            limit = Image.MAX_IMAGE_PIXELS
            if limit is not None and image.width * image.height > limit:
                raise Image.DecompressionBombError
            if max(image.size) > _THINNEST * min(image.size):
                raise BadImage(f"{image.width:,} x {image.height:,} pixels, too thin for a square")
            yield image
    except BadImage:
        raise
    except UnidentifiedImageError:
        if heic.is_heic(_head(source)) and not heic.is_readable():
            raise BadImage(f"a HEIC image: {heic.HOW_TO_READ}") from None
        raise BadImage("not an image in a format that is read here, or damaged") from None
    except Image.DecompressionBombError:
        raise BadImage(
            f"more than {Image.MAX_IMAGE_PIXELS:,} pixels, perhaps a decompression bomb"
        ) from None
    except Exception as error:  # a damaged file makes Pillow raise nearly anything
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise BadImage(" ".join(reason.split())) from None


def _head(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source[:12]
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(12)
    source.seek(0)
    return source.read(12)


def _turned_upright(image: Image.Image) -> Image.Image:
    try:
        # after loading, since Pillow turns TIFFs by itself then
        turn = _UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # damaged metadata beside good pixels
        turn = None
    return image if turn is None else image.transpose(turn)


def _eight_bit(image: Image.Image) -> Image.Image:
    """Grey of 16 bits or in floats -> 8 bits; everything else as it is."""
    if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
        return image
    values = np.asarray(image)
    low, high = values.min(), values.max()
    top = 65535  # Pillow's mode I holds 16-bit values
    if image.mode == "F":  # as arrays of floats: 0..1 or 0..255
        if 1 < high < 2:  # by rounding or resampling: as 0..255 it would be a black image
            raise BadImage(
                f"float grey values up to {high:g}, just above 1: clip them to 0..1 or scale them "
                "to 0..255"
            )
        top = 1 if high <= 1 else 255
    if not (low >= 0 and high <= top):  # also true of NaN
        raise BadImage(f"grey values from {low:g} to {high:g}: save it with 8 or 16 bits")
    scaled = np.rint(values * (255.0 / top)).astype(np.uint8)
    if "transparency" in image.info:
        scaled[values == image.info["transparency"]] = 255
    return Image.fromarray(scaled)


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image
    layer = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)


def _on_clear_canvas(image: Image.Image, frame: tuple[int, int, int, int]) -> Image.Image:
    """What a GIF's first frame leaves uncovered is clear; Pillow gives it some palette colour."""
    if frame == (0, 0, *image.size):
        return image
    canvas = Image.new("RGBA", image.size)
    canvas.paste(image.crop(frame).convert("RGBA"), frame)
    return canvas


def _squared(image: Image.Image, size: int) -> Image.Image:
    """Resize the centre square alone: a strip of 10,000 x 1 pixels must not become 960,000 x 96."""
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.resize(
        (size, size),
        Image.Resampling.BILINEAR,
        box=(left, top, left + side, top + side),
        reducing_gap=_REDUCING_GAP,
    )


@cache
def quiet_libtiff() -> None:
    """Its own lines on stderr are about files that are told of as bad images anyhow. Once for the
    process; nothing happens where Pillow's libtiff is not found."""
    for library in _libraries():
        with suppress(OSError):
            loaded = ctypes.CDLL(library)
            for name in _TIFF_HANDLERS:
                with suppress(AttributeError):
                    getattr(loaded, name)(None)


def _libraries() -> Iterator[str]:
    """Those in use, by Linux's own list, and those that come with Pillow elsewhere."""
    if _MAPS.exists():
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        yield from dict.fromkeys(
            line.split(maxsplit=5)[5] for line in lines if "libtiff" in line.rpartition("/")[2]
        )
    else:
        for path in Path(PIL.__file__).parent.glob(".dylibs/libtiff*"):
            yield str(path)
