"""Every pixel format as a file of it really is: written here, read back, compared with truth."""

import io
import os
import struct
import threading
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image, features

from dcdc.data.decode import BadImage, decode_image, quiet_pillow, read_header, square_images

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)


def quarters(side=32):
    """Red and green above, blue and white below: any wrong turn or channel shows."""
    image = Image.new("RGB", (side, side), WHITE)
    half = side // 2
    image.paste(RED, (0, 0, half, half))
    image.paste(GREEN, (half, 0, side, half))
    image.paste(BLUE, (0, half, half, side))
    return image


def corners(pixels):
    """The colours well inside the four quarters, row by row."""
    near, far = len(pixels) // 4, 3 * len(pixels) // 4
    return [pixels[y, x].astype(int).tolist() for y in (near, far) for x in (near, far)]


def close(found, truth, slack):
    return np.abs(np.asarray(found, int) - np.asarray(truth, int)).max() <= slack


def encoded(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize(
    ("kind", "slack"), [("PNG", 0), ("BMP", 0), ("TIFF", 0), ("GIF", 0), ("JPEG", 8), ("WEBP", 8)]
)
def test_formats(kind, slack):
    pixels = decode_image(encoded(quarters(), kind), 32, 3)
    assert pixels.shape == (32, 32, 3)
    assert pixels.dtype == np.uint8
    assert close(corners(pixels), [RED, GREEN, BLUE, WHITE], slack)


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_avif():
    pixels = decode_image(encoded(quarters(), "AVIF", quality=95), 32, 3)
    assert close(corners(pixels), [RED, GREEN, BLUE, WHITE], 12)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "stored_as"),
    [
        (1, None),
        (2, Image.Transpose.FLIP_LEFT_RIGHT),
        (3, Image.Transpose.ROTATE_180),
        (4, Image.Transpose.FLIP_TOP_BOTTOM),
        (5, Image.Transpose.TRANSPOSE),
        (6, Image.Transpose.ROTATE_90),
        (7, Image.Transpose.TRANSVERSE),
        (8, Image.Transpose.ROTATE_270),
    ],
)
def test_exif_orientation(kind, orientation, stored_as):
    stored = quarters() if stored_as is None else quarters().transpose(stored_as)
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = decode_image(encoded(stored, kind, exif=exif), 32, 3)
    assert close(corners(pixels), [RED, GREEN, BLUE, WHITE], 8)


def test_orientation_is_applied_before_the_crop():
    strip = Image.new("RGB", (11, 8))
    strip.putpixel((1, 0), WHITE)
    exif = Image.Exif()
    exif[0x0112] = 3
    turned = decode_image(encoded(strip, "PNG", exif=exif), 8, 1)
    upright = decode_image(encoded(strip.transpose(Image.Transpose.ROTATE_180), "PNG"), 8, 1)
    assert np.array_equal(turned, upright)


def test_damaged_exif_does_not_spoil_good_pixels():
    file = encoded(quarters(), "JPEG", exif=b"Exif\0\0" + b"\xff" * 40)
    with quiet_pillow():
        assert close(corners(decode_image(file, 32, 3)), [RED, GREEN, BLUE, WHITE], 8)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bit_grey_is_scaled_not_clipped(kind):
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (64, 1))
    file = encoded(Image.fromarray(ramp), kind)
    assert read_header(file).is_grey
    pixels = decode_image(file, 64, 1)[..., 0]
    assert np.array_equal(pixels, np.rint(ramp / 257))
    assert len(np.unique(pixels)) == 64


def test_16_bit_grey_big_endian_and_turned():
    ramp = np.tile(np.linspace(0, 65535, 16).astype(">u2"), (16, 1))
    exif = Image.Exif()
    exif[0x0112] = 2
    file = encoded(Image.frombytes("I;16B", (16, 16), ramp.tobytes()), "TIFF", exif=exif)
    assert np.array_equal(decode_image(file, 16, 1)[..., 0], np.rint(ramp / 257)[:, ::-1])


@pytest.mark.parametrize(("top", "scale"), [(1.0, 255), (200.0, 1)])
def test_float_grey_is_read_as_arrays_are(top, scale):
    ramp = np.tile(np.linspace(0, top, 16, dtype=np.float32), (16, 1))
    pixels = decode_image(encoded(Image.fromarray(ramp), "TIFF"), 16, 1)[..., 0]
    assert np.abs(pixels - ramp * scale).max() <= 0.5


@pytest.mark.parametrize("worst", [np.float32(np.nan), np.float32(256), np.int32(65536)])
def test_grey_without_a_known_range_is_bad(worst):
    grey = np.zeros((16, 16), worst.dtype)
    grey[3, 3] = worst
    with pytest.raises(BadImage, match="8 or 16 bits"):
        decode_image(encoded(Image.fromarray(grey), "TIFF"), 16, 1)


def test_transparency_is_laid_on_white():
    image = quarters().convert("RGBA")
    image.putalpha(Image.new("L", image.size, 0))
    image.paste((*RED, 128), (0, 0, 16, 16))
    half_red, *clear = corners(decode_image(encoded(image, "PNG"), 32, 3))
    assert close(half_red, (255, 127, 127), 1)
    assert clear == [[255, 255, 255]] * 3


def test_transparency_of_palette_and_grey():
    palette = quarters().quantize(4)
    see_through = palette.getpixel((2, 2))
    file = encoded(palette, "GIF", transparency=see_through)
    assert close(corners(decode_image(file, 32, 3)), [WHITE, GREEN, BLUE, WHITE], 2)
    grey = Image.new("LA", (8, 8), (0, 0))
    assert (decode_image(encoded(grey, "PNG"), 8, 1) == 255).all()
    keyed = encoded(Image.new("RGB", (8, 8), RED), "PNG", transparency=RED)
    assert (decode_image(keyed, 8, 3) == 255).all()


def test_palette_gif_of_two_frames_gives_the_first():
    second = Image.new("RGB", (32, 32), RED).quantize(4)
    file = encoded(quarters().quantize(4), "GIF", save_all=True, append_images=[second])
    with Image.open(file) as image:
        assert (image.n_frames, image.mode) == (2, "P")
    file.seek(0)
    assert close(corners(decode_image(file, 32, 3)), [RED, GREEN, BLUE, WHITE], 2)


def test_multi_page_tiff_gives_the_first():
    file = encoded(quarters(), "TIFF", save_all=True, append_images=[Image.new("RGB", (9, 9))])
    assert corners(decode_image(file, 32, 3)) == [list(c) for c in (RED, GREEN, BLUE, WHITE)]


def test_cmyk_jpeg():
    file = encoded(quarters().convert("CMYK"), "JPEG", quality=95)
    with Image.open(file) as image:
        assert image.mode == "CMYK"
    file.seek(0)
    assert close(corners(decode_image(file, 32, 3)), [RED, GREEN, BLUE, WHITE], 12)


def test_one_bit_and_grey_from_colour():
    bits = quarters().convert("L").point(lambda value: 255 * (value > 200)).convert("1")
    assert corners(decode_image(encoded(bits, "PNG"), 32, 1)) == [[0], [0], [0], [255]]
    luma = corners(decode_image(encoded(quarters(), "PNG"), 32, 1))
    assert close(luma, [[76], [75], [29], [255]], 1)  # .299 R + .587 G + .114 B
    grey = decode_image(encoded(Image.new("L", (8, 8), 7), "PNG"), 8, 3)
    assert (grey == 7).all()
    assert grey.shape == (8, 8, 3)


@pytest.mark.parametrize(
    ("mode", "grey"),
    [("1", True), ("L", True), ("LA", True), ("I;16", True), ("RGB", False), ("P", False)],
)
def test_header_tells_side_and_grey_without_decoding(mode, grey):
    content = encoded(Image.effect_noise((80, 40), 64).convert(mode), "PNG").getvalue()
    cut = io.BytesIO(content[:-200])
    header = read_header(cut)
    assert (header.shorter_side, header.is_grey) == (40, grey)
    with pytest.raises(BadImage):
        decode_image(cut, 40, 1)


def test_the_shorter_side_is_fitted_and_the_centre_kept():
    wide = Image.new("RGB", (300, 100), RED)
    wide.paste(quarters(100), (100, 0))
    for size in (100, 20, 200):
        pixels = decode_image(encoded(wide, "PNG"), size, 3)
        assert corners(pixels) == [list(c) for c in (RED, GREEN, BLUE, WHITE)]
    tall = wide.transpose(Image.Transpose.TRANSPOSE)
    flipped = decode_image(encoded(tall, "PNG"), 20, 3)
    assert corners(flipped) == [list(c) for c in (RED, BLUE, GREEN, WHITE)]


def test_reduction_averages_what_it_leaves_out():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (512, 512), np.uint8)
    found = decode_image(encoded(Image.fromarray(noise), "PNG"), 16, 1)[..., 0].astype(float)
    blocks = noise.reshape(16, 32, 16, 32).mean(axis=(1, 3))
    assert found.std() < 8  # single pixels would have a deviation of 74
    assert np.abs(found - blocks).max() < 12


@pytest.mark.parametrize("shape", [(512, 1024), (1024, 512)])
def test_a_big_jpeg_is_as_sharp_when_decoded_at_a_fraction(shape):
    rng = np.random.default_rng(0)
    spots = rng.integers(0, 256, (shape[0] // 11, shape[1] // 11), np.uint8)
    image = Image.fromarray(spots).resize(shape[::-1], Image.Resampling.NEAREST)
    at_a_fraction = decode_image(encoded(image, "JPEG"), 80, 1).astype(int)
    in_full = decode_image(encoded(image, "PNG"), 80, 1).astype(int)
    assert in_full.std() > 40
    assert np.abs(at_a_fraction - in_full).mean() < 2


def test_a_thin_strip_costs_no_memory():
    strip = Image.new("L", (60_000, 1), 9)
    assert (decode_image(encoded(strip, "PNG"), 224, 1) == 9).all()


def test_arrays_are_squared_as_files_are():
    rng = np.random.default_rng(0)
    for channels in (1, 3):
        images = rng.integers(0, 256, (3, 31, 44, channels), np.uint8)
        found = square_images(images, 12)
        for image, truth in zip(found, images, strict=True):
            file = encoded(Image.fromarray(truth.squeeze()), "PNG")
            assert np.array_equal(image, decode_image(file, 12, channels))


def png_of(width, height):
    """A valid header and next to no pixels."""

    def chunk(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return io.BytesIO(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [31_623, 10_000], ids=["error in Pillow", "warning in Pillow"])
@pytest.mark.parametrize("read", [read_header, lambda file: decode_image(file, 32, 3)])
def test_a_decompression_bomb_is_refused_by_its_header(side, read):
    with quiet_pillow(), pytest.raises(BadImage, match="decompression bomb"):
        read(png_of(side, side))


def test_quiet_pillow_silences_pillow_alone_and_only_inside():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with quiet_pillow():
            Image.open(png_of(10_000, 10_000))
            warnings.warn("ours", stacklevel=1)
        assert [str(warning.message) for warning in heard] == ["ours"]
        Image.open(png_of(10_000, 10_000))
        assert heard[-1].category is Image.DecompressionBombWarning


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"])
def test_a_cut_file_is_bad(kind):
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8))
    content = encoded(noise, kind).getvalue()
    for length in (0, 5, len(content) // 2):
        with quiet_pillow(), pytest.raises(BadImage) as caught:
            decode_image(io.BytesIO(content[:length]), 32, 3)
        assert str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_is_no_image_is_bad(tmp_path):
    fake = tmp_path / "fake.jpg"
    fake.write_text("hello")
    with pytest.raises(BadImage, match="not an image"):
        decode_image(fake, 32, 3)
    with pytest.raises(BadImage, match="leads nowhere"):
        decode_image(tmp_path / "gone.jpg", 32, 3)


def test_postscript_never_reaches_its_interpreter(tmp_path):
    quarters().save(tmp_path / "a.eps", "EPS")
    (tmp_path / "a.eps").rename(tmp_path / "a.png")
    with pytest.raises(BadImage, match="not an image"):
        read_header(tmp_path / "a.png")


def test_a_pipe_named_as_an_image_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    faults = []

    def read():
        try:
            read_header(tmp_path / "a.png")
        except BadImage as error:
            faults.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(5)
    assert len(faults) == 1
