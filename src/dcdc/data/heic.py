"""HEIC, in which many phones keep photos: read where the extra `heic` (pillow-heif) is."""

from functools import cache
from importlib.util import find_spec

EXTENSIONS = ("heic", "heif", "hif")
HOW_TO_READ = "pip install 'dcdc[heic]' to read them"
_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


@cache
def is_readable() -> bool:
    return find_spec("pillow_heif") is not None


@cache
def formats() -> tuple[str, ...]:
    """What Pillow calls it, once it knows it."""
    if not is_readable():
        return ()
    from pillow_heif import register_heif_opener

    register_heif_opener()
    return ("HEIF",)


def is_heic(head: bytes) -> bool:
    """By the first bytes of a file, whatever its name is."""
    return head[4:8] == b"ftyp" and head[8:12] in _BRANDS
