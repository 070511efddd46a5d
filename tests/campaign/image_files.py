"""Damaged image files of every format that is read, among good ones, refused or left out."""

import csv
import io
import os
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from campaign.case import Case, fresh_folder
from campaign.ground import Ground, ground, picture
from campaign.mutations import NO_FILE, cut, drawing, flipped, overwritten, replaced
from campaign.process import Ended, call, run_verb

_ENCODINGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "png": ("PNG", "RGB", {}),
    "png-palette": ("PNG", "P", {}),
    "png-16-bit": ("PNG", "I;16", {}),
    "jpeg": ("JPEG", "RGB", {"quality": 90}),
    "jpeg-progressive": ("JPEG", "RGB", {"progressive": True}),
    "jpeg-cmyk": ("JPEG", "CMYK", {}),
    "webp": ("WEBP", "RGB", {}),
    "avif": ("AVIF", "RGB", {}),
    "tiff": ("TIFF", "RGB", {}),
    "tiff-lzw": ("TIFF", "RGB", {"compression": "tiff_lzw"}),
    "tiff-jpeg": ("TIFF", "RGB", {"compression": "jpeg"}),
    "gif": ("GIF", "P", {}),
    "bmp": ("BMP", "RGB", {}),
}
_SUFFIX = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp", "AVIF": "avif", "TIFF": "tif"}
_SUFFIX |= {"GIF": "gif", "BMP": "bmp"}
_BAD = "m-bad"
"""Between the good ones."""


def cases() -> Iterator[Case]:
    good = _good_rows()
    for name, (kind, mode, options) in _ENCODINGS.items():
        content, suffix = _encoded(kind, mode, options), _SUFFIX[kind]
        draw = drawing("images", name)
        damaged = [
            *cut(content, 10),
            *flipped(content, 40, draw),
            *overwritten(content, 12, draw),
            *replaced(content),
        ]
        for words, changed in damaged:
            yield _case(f"{name}: {words}", f"{_BAD}.{suffix}", changed, good)
        for other in sorted({*_SUFFIX.values()} - {suffix}):
            yield _case(f"{name} called .{other}", f"{_BAD}.{other}", content, good)
    for words, suffix, content in _bombs():
        yield _case(words, f"{_BAD}.{suffix}", content, good)
    for words, lay in NO_FILE.items():
        if words.startswith(("a fifo", "a device", "a link")):
            yield _case(words, f"{_BAD}.png", lay, good)


def _encoded(kind: str, mode: str, options: dict[str, Any]) -> bytes:
    image = picture(5)
    image = (
        image.convert("L").convert("I").convert("I;16") if mode == "I;16" else image.convert(mode)
    )
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def _case(name: str, file: str, content: Any, good: tuple[Any, ...]) -> Case:
    skips = len(name) % 2 == 0
    made = ground()
    return Case(
        name=f"{name}, {'left out' if skips else 'refused'}",
        prepare=partial(_lay, made, file, content, "skip" if skips else "refuse"),
        names=(file,),
        answer=_rows_of_good,
        wanted=good,
        makes=("out.csv", "out.skipped.csv", "skipped.csv", "*skipped.csv"),
        cache=made.cache,
    )


def _lay(made: Ground, file: str, content: Any, on_bad: str, folder: Path) -> list[object]:
    photos = folder / "photos"
    photos.mkdir()
    for name in ("kind-0/00.png", "kind-1/01.png"):
        os.link(made.photos / name, photos / f"{'a' if '00' in name else 'z'}-good.png")
    if callable(content):
        content(photos / file)
    elif content is not None:
        (photos / file).write_bytes(content)
    flags = ["--out", "out.csv", "--on-bad", on_bad, "--device", "cpu", "--quiet"]
    return ["predict", made.image_run, "photos", *flags]


def _good_rows() -> tuple[Any, ...]:
    """Of the good images alone."""
    made = ground()
    with fresh_folder() as folder:
        arguments = _lay(made, "", None, "refuse", folder)
        ended = call(lambda: run_verb(arguments), folder, cache=made.cache)
        assert ended.code == 0, ended.err
        return _rows_of_good(folder, ended)


def _rows_of_good(folder: Path, ended: Ended) -> tuple[Any, ...]:  # noqa: ARG001
    with (folder / "out.csv").open(encoding="utf-8", newline="") as file:
        return tuple(tuple(row) for row in csv.reader(file) if not row[0].startswith(_BAD))


def _bombs() -> Iterator[tuple[str, str, bytes]]:
    """A few bytes that say they are a picture of gigabytes."""
    for side in (20_000, 65_535, 2**31 - 1):
        yield f"a PNG that says {side} a side", "png", _png(side, side, b"\0" * 64)
        yield f"a BMP that says {side} a side", "bmp", _bmp(side)
        yield f"a TIFF that says {side} a side", "tif", _tiff(side)
    yield "a PNG of 12,000 a side in 20 kB", "png", _png(12_000, 12_000, _rows(12_000), bits=1)
    for side in (0, 65_535):
        size = struct.pack("<HH", side, side)
        yield f"a GIF that says {side} a side", "gif", b"GIF89a" + size + b"\0\0\0;"
        content = bytearray(_encoded("JPEG", "RGB", {}))
        place = content.index(b"\xff\xc0")
        content[place + 5 : place + 9] = struct.pack(">HH", side, side)
        yield f"a JPEG that says {side} a side", "jpg", bytes(content)


def _rows(side: int) -> bytes:
    return bytes((side // 8 + 1) * side)


def _png(width: int, height: int, pixels: bytes, bits: int = 8) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _bmp(side: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (4, 4)).save(content, "BMP")
    changed = bytearray(content.getvalue())
    changed[18:26] = struct.pack("<ii", side, side)
    return bytes(changed)


def _tiff(side: int) -> bytes:
    content = io.BytesIO()
    Image.new("L", (4, 4)).save(content, "TIFF")
    whole = bytearray(content.getvalue())
    start = struct.unpack("<I", whole[4:8])[0]
    for number in range(struct.unpack("<H", whole[start : start + 2])[0]):
        entry = start + 2 + 12 * number
        tag = struct.unpack("<H", whole[entry : entry + 2])[0]
        if tag in (256, 257):
            whole[entry : entry + 12] = struct.pack("<HHII", tag, 4, 1, side)
    return bytes(whole)
