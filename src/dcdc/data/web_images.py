"""An image as a browser may have it: a small copy, its own bytes where they are safe, its date."""

import io
import re
from datetime import datetime
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from dcdc.data.decode import Source, opened_image, upright_pixels
from dcdc.data.listing import BadImage

JPEG, PNG = "image/jpeg", "image/png"
_SAFE = {  # what Pillow found the bytes to be; none of these runs anything
    **{"JPEG": JPEG, "MPO": JPEG, "PNG": PNG, "GIF": "image/gif", "BMP": "image/bmp"},
    **{"WEBP": "image/webp", "AVIF": "image/avif"},
}
_QUALITY, _FULL_QUALITY = 85, 95
_LONGEST = 3  # times the shorter side: of a panorama a small copy shows the middle
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d):(\d\d):(\d\d)")


def small_copy(source: Source, shorter_side: int) -> bytes:
    """JPEG, upright, on white, in its proportions; smaller images stay as they are."""
    with opened_image(source) as image:
        whole = upright_pixels(image, "RGB", shorter_side)
        side = min(whole.size)
        width, height = (min(length, _LONGEST * side) for length in whole.size)
        left, top = (whole.width - width) // 2, (whole.height - height) // 2
        scale = min(1.0, shorter_side / side)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        box = (left, top, left + width, top + height)
        return _saved(whole.resize(size, Image.Resampling.BILINEAR, box, 3), "JPEG", _QUALITY)


def own_type(file: BinaryIO) -> str | None:
    """By its bytes, whatever it is called; None where a browser cannot show or should not have it.

    Raises BadImage for what is no image that is read here.
    """
    with opened_image(file) as image:
        found = _SAFE.get(image.format or "")
    file.seek(0)
    return found


def full_copy(source: Source) -> bytes:
    """JPEG of the whole image, for formats that a browser does not show."""
    with opened_image(source) as image:
        return _saved(upright_pixels(image, "RGB"), "JPEG", _FULL_QUALITY)


def enlarged(pixels: NDArray[np.uint8], at_least: int) -> bytes:
    """PNG of H x W x C, every pixel as a square, so that the shorter side has `at_least` pixels."""
    times = max(1, -(-at_least // min(pixels.shape[:2])))
    image = Image.fromarray(
        np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    )
    size = (image.width * times, image.height * times)
    return _saved(image.resize(size, Image.Resampling.NEAREST), "PNG", _QUALITY)


def date_taken(source: Source) -> int | None:
    """Seconds by the camera's clock, as its EXIF says; None where it says none."""
    try:
        with opened_image(source) as image:
            exif = image.getexif()
            inner = exif.get_ifd(ExifTags.IFD.Exif)
            told = inner.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime)
    except BadImage:
        return None
    found = _DATE.fullmatch(str(told).strip("\0 "))
    try:
        parts = map(int, found.groups()) if found else ()
        return int((datetime(*parts) - datetime(1970, 1, 1)).total_seconds())
    except (TypeError, ValueError):
        return None


def _saved(image: Image.Image, kind: str, quality: int) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, quality=quality)
    return content.getvalue()
