"""Encoded images that lie somewhere, in order, not yet decoded: what every such source becomes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError


class BadImage(ValueError):  # noqa: N818 - a finding about an image; who reads many decides
    """An image that cannot be had or decoded; the message is the reason."""


Encoded = Path | bytes | BadImage
"""Where an image's bytes lie, the bytes themselves, or why there are none."""


@dataclass(frozen=True, eq=False)
class Listing:
    where: str
    """The source, for messages."""
    names: Sequence[str]
    encoded: Callable[[int], Iterator[Encoded]]
    """Every image from a row on, in order; read as it is asked for, so that memory stays flat."""
    fingerprint: str
    """Another one as soon as any image may be another."""
    targets: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    file_of: Callable[[int], Path] | None = None
    """Where the file of a row lies, for sources whose images are files."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Other files beside the images, counted by kind (`dcdc.data.left_out`)."""
    by_folder: bool = False
    """Whether the classes are sub-folders, which may mean something else: years, or phones."""

    def __post_init__(self) -> None:
        assert len(self.names) >= 1
        assert (self.targets is None) == (not self.class_names)
        assert self.targets is None or self.targets.shape == (len(self.names),)

    def __len__(self) -> int:
        return len(self.names)


def refuse_same_names(columns: Sequence[str], where: Path) -> None:
    """Of a table; without a name there may be several."""
    twice = [name for name, count in Counter(columns).items() if name and count > 1]
    if twice:
        raise InputError(f"{where} has several columns called {twice[0]!r}: rename or drop some")
