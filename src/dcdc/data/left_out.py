"""Files of a folder that are no images to read here: counted by kind, and told in one line."""

from collections.abc import Mapping

from dcdc.data import heic
from dcdc.printable import counted

NO_IMAGES = ""
"""The kind of all files that nobody would take for a picture."""
_RAW = ("arw", "cr2", "cr3", "crw", "dng", "nef", "nrw", "orf", "pef", "raf", "raw", "rw2", "srw")
_FILMS = ("3gp", "avi", "flv", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "mts", "webm", "wmv")
_OTHER_PICTURES = ("eps", "exr", "ico", "jp2", "jpe", "jxl", "pdf", "ppm", "psd", "svg", "tga")
_NAMED = frozenset((*_RAW, *_FILMS, *_OTHER_PICTURES, *heic.EXTENSIONS))
_OF_THE_SYSTEM = ("thumbs.db", "ehthumbs.db", "desktop.ini")
"""What Windows leaves in folders, as others do under hidden names."""


def kind_of(name: str) -> str | None:
    """Its extension, where it tells of pictures; None: a file of the system, of no interest."""
    lowered = name.lower()
    if lowered in _OF_THE_SYSTEM:
        return None
    extension = lowered.rpartition(".")[2]
    return extension if "." in name and extension in _NAMED else NO_IMAGES


def told(left_out: Mapping[str, int]) -> str:
    """`200 .heic (pip install ...), 3 .mp4 (...), 2 files that are not images`: the most first."""
    pictures = sorted((kind for kind in left_out if kind), key=lambda kind: (-left_out[kind], kind))
    parts = [f"{left_out[kind]:,} .{kind}{_how_to_have(kind)}" for kind in pictures]
    n_others = left_out.get(NO_IMAGES, 0)
    if n_others:
        parts.append(counted(n_others, "file that is no image", "files that are no images"))
    return ", ".join(parts)


def _how_to_have(kind: str) -> str:
    if kind in heic.EXTENSIONS:
        return f" ({heic.HOW_TO_READ})"
    if kind in _RAW:
        return " (export them as JPEG)"
    return " (take frames of them, by ffmpeg say)" if kind in _FILMS else " (save them as PNG)"
