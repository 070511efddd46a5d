"""Every pixel format as a file of it really is: written here, read back, compared with truth."""

import io
import logging
import os
import struct
import threading
import warnings
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import AvifImagePlugin, Image, features

from dcdc.data.decode import BadImage, decode_image, quiet_pillow, read_header, square_images

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)
AVIF = pytest.param(
    "AVIF", marks=pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
)


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


def chunk(kind, body):
    checksum = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + checksum


def png_of(width, height, rows=bytes(1000), depth=8, colour=0, before=(), after=()):
    """A PNG's own bytes, with other chunks before and after the pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), *before, (b"IDAT", zlib.compress(rows)), *after, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def tiff_of(width, height, pixels, bits=(8,), photometric=1):
    """A TIFF's own bytes, little-endian, in one strip."""
    n_tags, n_samples = 9, len(bits)
    depths_at = 8 + 2 + 12 * n_tags + 4
    depths = struct.pack(f"<{n_samples}H", *bits)
    fields = [
        *((256, 4, 1, width), (257, 4, 1, height)),
        (258, 3, n_samples, bits[0] if n_samples == 1 else depths_at),
        *((259, 3, 1, 1), (262, 3, 1, photometric)),
        (273, 4, 1, depths_at + len(depths)),
        *((277, 3, 1, n_samples), (278, 4, 1, height), (279, 4, 1, len(pixels))),
    ]
    tags = b"".join(struct.pack("<HHII", *field) for field in fields)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", n_tags) + tags + bytes(4) + depths + pixels


GIF_TABLE_AT, GIF_FRAME_AT = 13, 13 + 4 * 3  # a table of four colours comes before the frame


def gif_of(canvas=(16, 16), frame=(16, 16), left_top=(0, 0), local_table=b"", see_through=None):
    """A 16 x 16 frame of blue above red (palette 2 and 1; 0 is green), laid on a canvas."""
    image = Image.new("P", (16, 16), 2)
    image.paste(1, (0, 8, 16, 16))
    image.putpixel((15, 15), 3)  # so that Pillow keeps all four
    image.putpixel((14, 15), 0)
    image.putpalette([*GREEN, *RED, *BLUE, *WHITE])
    content = encoded(image, "GIF", interlace=0).getvalue()
    assert content[GIF_TABLE_AT:GIF_FRAME_AT] == bytes([*GREEN, *RED, *BLUE, *WHITE])
    assert content[GIF_FRAME_AT : GIF_FRAME_AT + 1] == b","
    control = b"" if see_through is None else b"!\xf9\x04\x01\0\0%c\0" % see_through
    return b"".join(
        (
            b"GIF89a",
            struct.pack("<HH", *canvas),
            content[10:GIF_FRAME_AT],
            control,
            struct.pack("<cHHHH", b",", *left_top, *frame),
            b"\x81" + local_table if local_table else b"\0",
            content[GIF_FRAME_AT + 10 :],
        )
    )


@contextmanager
def at_most_more_memory(megabytes):
    """Asking the system for more is refused, as on a machine that has no more."""
    resource = pytest.importorskip("resource")
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not tell the memory in use")
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + megabytes * 2**20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(
    ("kind", "slack", "options"),
    [
        ("PNG", 0, {}),
        ("BMP", 0, {}),
        ("TIFF", 0, {}),
        ("TIFF", 0, {"compression": "tiff_lzw"}),
        ("GIF", 0, {}),
        ("JPEG", 8, {}),
        ("JPEG", 8, {"progressive": True}),
        ("WEBP", 8, {}),
        ("WEBP", 0, {"lossless": True}),
        pytest.param(*AVIF.values, 12, {"quality": 95}, marks=AVIF.marks),
    ],
)
@pytest.mark.parametrize("held_as", ["file", "bytes", "open file"])
def test_formats(tmp_path, kind, slack, options, held_as):
    source = encoded(quarters(), kind, **options)
    if held_as == "bytes":
        source = source.getvalue()
    elif held_as == "file":
        (tmp_path / "a").write_bytes(source.getvalue())
        source = tmp_path / "a"
    pixels = decode_image(source, 32, 3)
    assert pixels.shape == (32, 32, 3)
    assert pixels.dtype == np.uint8
    assert close(corners(pixels), [RED, GREEN, BLUE, WHITE], slack)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP", AVIF])
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
    assert close(corners(pixels), [RED, GREEN, BLUE, WHITE], 24 if kind == "AVIF" else 8)


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


@pytest.mark.parametrize(
    ("depth", "colour", "pixel", "truth"),
    [
        (1, 0, b"\x0f", [[0, 0, 0], [255, 255, 255]]),
        (2, 0, b"\x55\xaa", [[85, 85, 85], [170, 170, 170]]),
        (
            16,
            2,
            4 * b"\x12\x34\xff\xff\0\0" + 4 * b"\x80\0\0\0\x40\0",
            [[18, 255, 0], [128, 0, 64]],
        ),
        (8, 4, 4 * b"\x20\xff" + 4 * b"\0\x80", [[32, 32, 32], [127, 127, 127]]),
        (16, 4, 4 * b"\x12\x34\xff\xff" + 4 * b"\0\0\0\0", [[18, 18, 18], [255, 255, 255]]),
        (16, 6, 8 * b"\x80\0\0\0\0\0\xff\xff", [[128, 0, 0], [128, 0, 0]]),
    ],
    ids=[
        "1-bit",
        "2-bit",
        "16-bit colour",
        "grey and alpha",
        "16-bit grey and alpha",
        "16-bit RGBA",
    ],
)
def test_depths_of_png(depth, colour, pixel, truth):
    pixels = decode_image(png_of(8, 8, 8 * (b"\0" + pixel), depth, colour), 8, 3)
    assert pixels[4, [1, 6]].tolist() == truth


def test_16_bit_colour_tiff():
    pixel = struct.pack("<HHH", 0x1234, 0xFFFF, 0x4000)
    content = tiff_of(8, 8, 64 * pixel, bits=(16, 16, 16), photometric=2)
    assert (decode_image(content, 8, 3) == [0x12, 0xFF, 0x40]).all()


@pytest.mark.parametrize(("top", "scale"), [(1.0, 255), (200.0, 1)])
def test_float_grey_is_read_as_arrays_are(top, scale):
    ramp = np.tile(np.linspace(0, top, 16, dtype=np.float32), (16, 1))
    pixels = decode_image(encoded(Image.fromarray(ramp), "TIFF"), 16, 1)[..., 0]
    assert np.abs(pixels - ramp * scale).max() <= 0.5


@pytest.mark.parametrize("high", [np.nextafter(np.float32(1), np.float32(2)), np.float32(1.06)])
def test_floats_just_above_one_are_no_black_image(high):
    """As arrays, which rounding or resampling leave a little above white, are refused."""
    ramp = np.tile(np.linspace(0, high, 16, dtype=np.float32), (16, 1))
    with pytest.raises(BadImage, match="just above 1: clip them"):
        decode_image(encoded(Image.fromarray(ramp), "TIFF"), 16, 1)


@pytest.mark.parametrize("worst", [np.float32(np.nan), np.float32(256), np.int32(65536)])
def test_grey_without_a_known_range_is_bad(worst):
    grey = np.zeros((16, 16), worst.dtype)
    grey[3, 3] = worst
    with pytest.raises(BadImage, match="8 or 16 bits"):
        decode_image(encoded(Image.fromarray(grey), "TIFF"), 16, 1)


@pytest.mark.parametrize(
    ("kind", "slack"),
    [("PNG", 1), ("TIFF", 1), ("WEBP", 8), pytest.param(*AVIF.values, 12, marks=AVIF.marks)],
)
def test_transparency_is_laid_on_white(kind, slack):
    image = quarters().convert("RGBA")
    image.putalpha(Image.new("L", image.size, 0))
    image.paste((*RED, 128), (0, 0, 16, 16))
    half_red, *clear = corners(decode_image(encoded(image, kind), 32, 3))
    assert close(half_red, (255, 127, 127), slack)
    assert close(clear, [WHITE] * 3, slack)


def test_transparency_of_palette_and_grey():
    palette = quarters().quantize(4)
    see_through = palette.getpixel((2, 2))
    file = encoded(palette, "GIF", transparency=see_through)
    assert close(corners(decode_image(file, 32, 3)), [WHITE, GREEN, BLUE, WHITE], 2)
    grey = Image.new("LA", (8, 8), (0, 0))
    assert (decode_image(encoded(grey, "PNG"), 8, 1) == 255).all()
    keyed = encoded(Image.new("RGB", (8, 8), RED), "PNG", transparency=RED)
    assert (decode_image(keyed, 8, 3) == 255).all()
    alphas = bytes([255, 128, 0])  # of the first three colours
    table = bytes([*GREEN, *RED, *BLUE, *WHITE])
    chunks = [(b"PLTE", table), (b"tRNS", alphas)]
    half_red = decode_image(png_of(8, 8, 8 * b"\0\x05\xaf", 2, 3, chunks), 8, 3)
    assert close(half_red[4, [0, 3, 5, 7]], [GREEN, (255, 127, 127), WHITE, WHITE], 1)
    key = [(b"tRNS", b"\x12\x34")]
    grey = png_of(8, 8, 8 * (b"\0" + 4 * b"\x12\x34" + 4 * b"\x12\x35"), 16, 0, key)
    assert decode_image(grey, 8, 1)[4, [1, 6], 0].tolist() == [255, 18]


def test_palette_gif_of_two_frames_gives_the_first():
    second = Image.new("RGB", (32, 32), RED).quantize(4)
    file = encoded(quarters().quantize(4), "GIF", save_all=True, append_images=[second])
    with Image.open(file) as image:
        assert (image.n_frames, image.mode) == (2, "P")
    file.seek(0)
    assert close(corners(decode_image(file, 32, 3)), [RED, GREEN, BLUE, WHITE], 2)


@pytest.mark.parametrize("see_through", [None, 3])
def test_what_the_first_frame_of_a_gif_leaves_uncovered_is_white(see_through):
    content = gif_of(canvas=(32, 32), left_top=(8, 8), see_through=see_through)
    pixels = decode_image(content, 32, 3)
    covered = np.zeros((32, 32), bool)
    covered[8:24, 8:24] = True
    assert (pixels[~covered] == 255).all()
    assert pixels[[9, 22], 16].tolist() == [list(BLUE), list(RED)]


def test_the_local_colours_of_a_gif_frame_win():
    content = gif_of(local_table=bytes([*RED, *GREEN, *WHITE, *BLUE]))
    assert corners(decode_image(content, 16, 3)) == [[255] * 3] * 2 + [list(GREEN)] * 2


@pytest.mark.parametrize("kind", ["WEBP", AVIF])
def test_of_an_animation_the_first_frame_counts(kind):
    frames = [Image.new("RGB", (32, 32), RED)] * 2
    file = encoded(quarters(), kind, save_all=True, append_images=frames, duration=40)
    with Image.open(file) as image:
        assert image.n_frames >= 2
    assert close(corners(decode_image(file.getvalue(), 32, 3)), [RED, GREEN, BLUE, WHITE], 32)


def test_multi_page_tiff_gives_the_first():
    file = encoded(quarters(), "TIFF", save_all=True, append_images=[Image.new("RGB", (9, 9))])
    assert corners(decode_image(file, 32, 3)) == [list(c) for c in (RED, GREEN, BLUE, WHITE)]


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk(kind):
    file = encoded(quarters().convert("CMYK"), kind, quality=95)
    with Image.open(file) as image:
        assert image.mode == "CMYK"
    file.seek(0)
    assert close(corners(decode_image(file, 32, 3)), [RED, GREEN, BLUE, WHITE], 12)
    assert close(corners(decode_image(file.getvalue(), 32, 1)), [[76], [75], [29], [255]], 12)


@pytest.mark.parametrize("mode", ["1", "L", "P"])
@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF"])
def test_one_byte_or_less_a_pixel(kind, mode):
    image = quarters().quantize(4) if mode == "P" else quarters().convert(mode, dither=0)
    truth = np.asarray(image.convert("RGB"))
    assert np.array_equal(decode_image(encoded(image, kind), 32, 3), truth)


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


@pytest.mark.parametrize("size", [(1000, 1), (1, 1)])
def test_a_thin_strip_costs_no_memory(size):
    assert (decode_image(encoded(Image.new("L", size, 9), "PNG"), 224, 1) == 9).all()


def test_arrays_are_squared_as_files_are():
    rng = np.random.default_rng(0)
    for channels in (1, 3):
        images = rng.integers(0, 256, (3, 31, 44, channels), np.uint8)
        found = square_images(images, 12)
        for image, truth in zip(found, images, strict=True):
            file = encoded(Image.fromarray(truth.squeeze()), "PNG")
            assert np.array_equal(image, decode_image(file, 12, channels))


def with_size(kind, width, height):
    """A small image whose header declares another size."""
    if kind == "PNG":
        return png_of(width, height)
    if kind == "TIFF":
        return tiff_of(width, height, bytes(1000))
    if kind == "GIF":
        return gif_of((width, height), (width, height))
    content = encoded(Image.new("RGB", (64, 64)), kind, lossless=True).getvalue()
    if kind == "WEBP":
        at, size = content.index(b"VP8L") + 9, struct.pack("<I", width - 1 | height - 1 << 14)
    elif kind == "BMP":
        at, size = 18, struct.pack("<ii", width, height)
    elif kind == "JPEG":
        at, size = content.index(b"\xff\xc0") + 5, struct.pack(">HH", height, width)
    elif kind == "AVIF":
        at, size = content.index(b"ispe") + 8, struct.pack(">II", width, height)
    return content[:at] + size + content[at + len(size) :]


KINDS = ["JPEG", "PNG", "TIFF", "GIF", "BMP"]
READERS = [read_header, lambda file: decode_image(file, 32, 3)]


@pytest.mark.parametrize(
    ("kind", "side"),
    [
        *((kind, side) for kind in KINDS for side in (9_460, 50_000)),
        *(("WEBP", side) for side in (9_460, 16_383)),
        pytest.param(*AVIF.values, 9_460, marks=AVIF.marks),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_a_decompression_bomb_is_refused_by_its_header(kind, side, read):
    assert 9_460**2 > Image.MAX_IMAGE_PIXELS > 9_459**2
    content = with_size(kind, side, side)
    megabytes = 4096 if kind == "WEBP" else 32  # its reader reserves a canvas, and leaves it alone
    with (
        quiet_pillow(),
        at_most_more_memory(megabytes),
        pytest.raises(BadImage, match="decompression bomb"),
    ):
        read(content)


@pytest.mark.parametrize("size", [(1, 60_000), (60_000, 1)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("read", READERS)
def test_a_strip_too_thin_for_a_square_is_refused_by_its_header(kind, size, read):
    with at_most_more_memory(32), pytest.raises(BadImage, match=r"60,000.* too thin"):
        read(with_size(kind, *size))


@pytest.mark.parametrize("kind", [*KINDS, AVIF])
@pytest.mark.parametrize("read", READERS)
def test_an_image_of_no_size_is_bad(kind, read):
    with quiet_pillow(), pytest.raises(BadImage):
        read(with_size(kind, 0, 0))


@pytest.mark.parametrize(
    ("where", "kind", "start"),
    [
        ("before", b"zTXt", b"a\0\0"),
        ("before", b"iCCP", b"a\0\0"),
        ("after", b"iTXt", b"a\0\1\0\0\0"),
    ],
)
def test_a_bomb_beside_the_pixels_of_a_png_is_bad(where, kind, start):
    bomb = zlib.compress(bytes(64 * 2**20), 1)
    content = png_of(8, 8, **{where: [(kind, start + bomb)]})
    with at_most_more_memory(32), pytest.raises(BadImage, match="too large"):
        decode_image(content, 8, 1)


def test_more_pixels_than_the_header_says_are_left_alone():
    content = png_of(8, 8, bytes(64 * 2**20))
    with at_most_more_memory(32):
        assert (decode_image(content, 8, 1) == 0).all()


def test_quiet_pillow_silences_pillow_alone_and_only_inside():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with quiet_pillow():
            Image.open(io.BytesIO(png_of(10_000, 10_000)))
            warnings.warn("ours", stacklevel=1)
        assert [str(warning.message) for warning in heard] == ["ours"]
        Image.open(io.BytesIO(png_of(10_000, 10_000)))
        assert heard[-1].category is Image.DecompressionBombWarning


def test_quiet_pillow_gives_an_avif_one_thread_and_silences_the_log(capfd, monkeypatch):
    monkeypatch.setattr(logging.getLogger("PIL"), "propagate", False)  # as where no log is kept
    threads = AvifImagePlugin.DEFAULT_MAX_THREADS
    with quiet_pillow():
        assert AvifImagePlugin.DEFAULT_MAX_THREADS == 1
        with pytest.raises(BadImage):
            decode_image(tiff_of(8, 8, bytes(64), bits=(8,) * 99), 8, 1)
        assert capfd.readouterr() == ("", "")
    assert threads == AvifImagePlugin.DEFAULT_MAX_THREADS
    assert logging.getLogger("PIL").handlers == []


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP", AVIF])
def test_a_cut_file_is_bad(kind):
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8))
    content = encoded(noise, kind).getvalue()
    for length in (0, 5, len(content) // 2, len(content) - 200):
        with quiet_pillow(), pytest.raises(BadImage) as caught:
            decode_image(content[:length], 32, 3)
        assert str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"hello", b"PK\3\4" + bytes(99), b"<svg width='9' height='9'/>", b"%PDF-1.7\n"]
)
def test_what_is_no_image_is_bad(tmp_path, content):
    fake = tmp_path / "fake.jpg"
    fake.write_bytes(content)
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
