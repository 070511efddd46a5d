"""The commands that a page tells people to type: the lines of its blocks ```sh."""

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"(?:^|\s+)#.*$")


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str
    """Without its comment."""


def commands_of(page: Path, text: str | None = None) -> list[Command]:
    """In their order; `text`: the page's, where it is not read."""
    text = page.read_text(encoding="utf-8") if text is None else text
    found = []
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1)) + 1
        waiting = ""
        for number, line in enumerate(block[1].splitlines(), start=first):
            plain = _COMMENT.sub("", waiting + line.strip()).strip()
            if plain.endswith("\\"):
                waiting = plain[:-1]
                continue
            waiting = ""
            if plain:
                found.append(Command(page.name, number, plain))
    return found
