"""Text for people: from outside as they may safely see it, names that every file format can hold,
and a number with its noun."""

import re

_ENCODED = re.compile(r"\\(?:x[89a-f][0-9a-f]|ud[89a-f][0-9a-f]{2})")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Control characters, what ends a line or turns the direction of writing, and lone surrogates.
_NOT_SHOWN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def shown(text: str) -> str:
    """For a terminal, a page or a figure: what would steer it is written out, as `\\x1b`."""
    return _NOT_SHOWN.sub(lambda found: _escape(ord(found[0])), text)


def shown_lines(text: str) -> str:
    """Of several lines."""
    return "\n".join(map(shown, text.split("\n")))


def utf8_name(name: str) -> str:
    """A file's name in UTF-8, another one for every file; bytes that are none become `\\xff`.

    Any UTF-8 name stays as it is, unless it holds such a text itself: then its backslashes are
    doubled, as in all names with bytes that are none. `file_name` is the way back.
    """
    if not _SURROGATE.search(name) and not _ENCODED.search(name):
        return name
    doubled = name.replace("\\", "\\\\")
    return _SURROGATE.sub(lambda found: _escape_byte(ord(found[0])), doubled)


def file_name(name: str) -> str:
    """What `utf8_name` was given, with bytes that are no UTF-8 as Python has them in names."""
    if not _ENCODED.search(name):
        return name
    return re.sub(rf"\\\\|{_ENCODED.pattern}", lambda found: _unescaped(found[0]), name)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escape_byte(code: int) -> str:
    """Python has a byte of a name that is no UTF-8 as a surrogate, from U+DC80 on."""
    return _escape(code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code)


def _unescaped(text: str) -> str:
    if text == "\\\\":
        return "\\"
    code = int(text[2:], 16)
    return chr(code + 0xDC00 if text[1] == "x" else code)


def counted(number: int, one: str, several: str | None = None) -> str:
    """`1 image`, `1,200 images`; `several` where an s is not enough."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
