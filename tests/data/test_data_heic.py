"""HEIC as a phone writes it: real bytes, read where pillow-heif is installed."""

import io

import numpy as np
import pytest
from PIL import Image

from dcdc.data import BadImage, heic, load_images
from dcdc.data.decode import decode_image

ORIENTATION = 0x0112


@pytest.fixture
def heic_bytes():
    """Left half red, right half blue, by way of the EXIF orientation that turns it upright."""
    pillow_heif = pytest.importorskip("pillow_heif")
    pixels = np.zeros((64, 96, 3), np.uint8)
    pixels[:, :48, 0] = pixels[:, 48:, 2] = 255
    exif = Image.Exif()
    exif[ORIENTATION] = 3  # upside down
    file = io.BytesIO()
    turned = Image.fromarray(pixels).transpose(Image.Transpose.ROTATE_180)
    pillow_heif.from_pillow(turned).save(file, quality=90, exif=exif.tobytes())
    return file.getvalue()


def test_a_photo_is_decoded_upright(heic_bytes):
    assert heic.is_heic(heic_bytes[:12])
    image = decode_image(heic_bytes, 16, 3).astype(int)
    assert image[8, 2, 0] > 200 > 60 > image[8, 2, 2]
    assert image[8, 13, 2] > 200 > 60 > image[8, 13, 0]


def test_photos_of_a_folder_are_read_beside_others(heic_bytes, tmp_path):
    (tmp_path / "a.HEIC").write_bytes(heic_bytes)
    Image.new("RGB", (64, 64), "red").save(tmp_path / "b.png")
    (tmp_path / "c.heic").write_bytes(heic_bytes[: len(heic_bytes) // 2])
    found = load_images(tmp_path, on_bad="skip")
    assert list(found.names) == ["a.HEIC", "b.png"]
    assert [skipped.name for skipped in found.skipped] == ["c.heic"]


def test_without_the_extra_it_is_named_whatever_the_file_is_called(tmp_path, monkeypatch):
    monkeypatch.setattr(heic, "is_readable", lambda: False)
    monkeypatch.setattr(heic, "formats", lambda: ())
    file = tmp_path / "photo.jpg"
    file.write_bytes(b"\0\0\0\x1cftypheic" + bytes(32))
    with pytest.raises(BadImage, match=r"a HEIC image: pip install 'dcdc\[heic\]' to read them"):
        decode_image(file, 16, 3)
    with pytest.raises(BadImage, match="not an image in a format that is read here"):
        decode_image(b"\0\0\0\x1cftypqt  " + bytes(32), 16, 3)
