"""Real damage to real files: bytes cut, flipped and replaced; values of JSON; what is no file."""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SEED = 24
Damage = tuple[str, bytes | Callable[[Path], object]]
"""What was done, in words; and what the file holds then, or a call that writes it."""


def drawing(*of: object) -> random.Random:
    """The same for the same words, whatever ran before."""
    return random.Random(" ".join(map(str, (SEED, *of))))


def cut(content: bytes, n: int) -> Iterator[Damage]:
    """At the ends, and evenly between."""
    size = len(content)
    places = {0, 1, size - 1, size // 2, *(size * k // (n - 2) for k in range(1, n - 2))}
    for length in sorted(place for place in places if place < size)[:n]:
        yield f"cut to {length} bytes", content[:length]


def flipped(
    content: bytes, n: int, draw: random.Random, *, most: int | None = None
) -> Iterator[Damage]:
    """Single bits, half of them among the first bytes, where headers are."""
    head = min(64, len(content))
    last = min(most or len(content), len(content))
    chosen: set[int] = set()
    while len(chosen) < min(n, 8 * len(content)):
        bit = draw.randrange(8 * (head if len(chosen) % 2 and len(chosen) < 6 * head else last))
        chosen.add(bit)
    for bit in sorted(chosen):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit} flipped", bytes(damaged)


def overwritten(content: bytes, n: int, draw: random.Random) -> Iterator[Damage]:
    """Some bytes in a row by others: zeros, ones or noise."""
    for number in range(n):
        start = draw.randrange(len(content))
        length = min(draw.choice((1, 2, 4, 8, 64, 512)), len(content) - start)
        what, by = draw.choice(
            (
                ("zeros", bytes(length)),
                ("ones", b"\xff" * length),
                ("noise", draw.randbytes(length)),
            )
        )
        changed = content[:start] + by + content[start + length :]
        if changed != content:
            yield f"{number}: {length} bytes from {start} by {what}", changed


def replaced(content: bytes) -> Iterator[Damage]:
    """The whole file by what is no such file."""
    yield "empty", b""
    yield "zero bytes", bytes(max(16, len(content)))
    yield "a line of text", b"hello, this is no such file\n"
    yield "an HTML page", b"<!doctype html><html><body>404 Not Found</body></html>\n"
    yield "a byte order mark before", b"\xef\xbb\xbf" + content
    yield "twice", content + content
    yield "a line after", content + b"trailing\n"


def texts(content: bytes) -> Iterator[Damage]:
    """Of a file of text: other encodings, lines half written, numbers and depth without end."""
    text = content.decode()
    yield "UTF-16", text.encode("utf-16")
    yield "UTF-32", text.encode("utf-32")
    yield "not UTF-8", content[:3] + b"\xff\xfe" + content[3:]
    yield "a NUL inside", content[:5] + b"\0" + content[5:]
    yield "carriage returns", text.replace("\n", "\r").encode()
    yield "half a line more", content + b'{"epoch": 1'
    yield "deep lists", b"[" * 100_000
    yield "deep objects", b'{"a":' * 100_000
    yield "deep and whole", b"[" * 100_000 + b"]" * 100_000
    yield "a number of 5,000 digits", b"9" * 5000
    yield "an object with a number of 5,000 digits", b'{"format": ' + b"9" * 5000 + b"}"
    yield "a list", b"[]"
    yield "an empty object", b"{}"
    yield "null", b"null"
    yield "NaN", b"NaN"
    yield "a text of 16 MB", b'"' + b"x" * (16 << 20) + b'"'


WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "-1": -1,
    "0": 0,
    "a half": 0.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "10^30": 10**30,
    "10^400": 10**400,
    "a text": "nonsense",
    "an empty text": "",
    "a lone surrogate": "\ud800",
    "an empty list": [],
    "a list of a list": [[1]],
    "an empty object": {},
    "a deep list": json.loads("[" * 500 + "]" * 500),
}
ABSENT = object()
CHECKSUM = "checksum"
EDITED = ", its check sum taken out"


def json_values(
    content: bytes, wrong: dict[str, Any] | None = None, depth: int = 3
) -> Iterator[Damage]:
    """Each key, not too deep, by each wrong value, and without it; half of them as a person edits
    them, who takes the check sum out."""
    whole = json.loads(content)
    number = 0
    for path in (path for path in _paths(whole) if len(path) <= depth):
        for words, value in [("absent", ABSENT), *(wrong or WRONG).items()]:
            changed = json.loads(content)
            if not _put(changed, path, value):
                continue
            number += 1
            edited = number % 2 and changed.pop(CHECKSUM, None) is not None
            told = f"{'.'.join(map(str, path))} {words}{EDITED if edited else ''}"
            yield told, json.dumps(changed).encode()


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = list(enumerate(value))[:2]
    for key, child in inside:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _put(whole: Any, path: tuple[Any, ...], value: Any) -> bool:
    """Whether it is another value now."""
    *parents, last = path
    for key in parents:
        whole = whole[key]
    if value is ABSENT:
        del whole[last]
        return True
    if repr(whole[last]) == repr(value):
        return False
    whole[last] = value
    return True


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _filled_folder(path: Path) -> None:
    path.mkdir()
    (path / "other").write_text("somebody's")


NO_FILE: dict[str, Callable[[Path], None]] = {
    "a fifo": _fifo,
    "a device": _zeros,
    "a folder": Path.mkdir,
    "a folder with a file": _filled_folder,
    "a link to itself": _loop,
    "a link to nothing": _dangling,
    "absent": lambda path: None,  # noqa: ARG005
}
"""What may lie in the place of a file; each is given the place, empty."""


def in_place(path: Path, lay: Callable[[Path], object]) -> None:
    path.unlink()
    lay(path)
