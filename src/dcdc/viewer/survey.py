"""What takes a while to find out of a run's images, in a thread of its own while people look.

Copies of one image by their content, near-duplicates and out-of-distribution scores by features,
and when photos were taken.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.data.listing import BadImage
from dcdc.data.web_images import date_taken
from dcdc.errors import InputError
from dcdc.metrics.agreement import nearest_by_features
from dcdc.runtime.environment import available_cores
from dcdc.stored.reading import file_digest
from dcdc.viewer.kept_features import KeptFeatures
from dcdc.viewer.likeness import Duplicates, Likeness, grouped
from dcdc.viewer.oddity import Oddity, look_at_all, look_for_oddity
from dcdc.viewer.originals import Original, Originals

UNKNOWN_DATE = np.iinfo(np.int64).max
_AT_ONCE = 256
_NICE = 10


class ByFeatures(NamedTuple):
    """What features tell, of as many images as they are known of."""

    likeness: Likeness
    oddity: Oddity | None = None
    """None until it is known."""


class Survey:
    """`copies` and `dates` are None until they are known. Everything is set whole: who reads it
    meanwhile has what was known before."""

    def __init__(
        self,
        n_images: int,
        originals: Originals | None,
        features: KeptFeatures,
    ) -> None:
        self.copies: list[NDArray[np.int64]] | None = None
        """Rows of images with the same content, a list for each group."""
        self.n_copies: NDArray[np.int64] | None = None
        """N: how many images have this one's content, itself among them."""
        self.by_features: ByFeatures | None = None
        """Of some images at first, of all once all features were read."""
        if features.some is not None:
            self.by_features = ByFeatures(Likeness.of(features.rows, features.some))
        self.neighbours: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        """Rows of the images with features at first (n), and of each its nearest among them."""
        self.dates: NDArray[np.int64] | None = None
        """N: seconds; UNKNOWN_DATE where nothing is told."""
        self.done = threading.Event()
        self.note: str | None = None
        """Why not all features are known, though they were kept."""
        self._n_images, self._originals = n_images, originals
        self._joined: tuple[object, object, Duplicates] = (None, None, Duplicates(n_images))
        self._joining = threading.Lock()
        self._features = features
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="survey", daemon=True)

    @property
    def duplicates(self) -> Duplicates:
        """As far as they are known; the same object until more is."""
        copies, known = self.copies, self.by_features
        with self._joining:
            if self._joined[0] is not copies or self._joined[1] is not known:
                alike: list[NDArray[np.int64]] = []
                if known is not None and known.oddity is not None:
                    alike = [known.likeness.rows[each] for each in known.oddity.near_duplicates]
                found = Duplicates(self._n_images, copies or [], alike)
                self._joined = (copies, known, found)
            return self._joined[2]

    def start(self, after: float = 0.0) -> None:
        """`after` so many seconds, in which the first page has the machine for itself."""
        self._after = after
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look(self) -> None:
        try:
            if self._stopped.wait(self._after):
                return
            with _in_the_background():
                self._look_at_each()
        except _Stopped:
            pass
        finally:
            self.done.set()

    def _look_at_each(self) -> None:
        if self._features.some is not None and self.by_features is not None:
            oddity = look_for_oddity(self._features.some)
            self.by_features = self.by_features._replace(oddity=oddity)
            rows = self._features.rows
            self.neighbours = rows, rows[nearest_by_features(self._features.some)]
        if self._originals is not None and self._originals.are_files:
            self._keep_copies(self._copies_of_files(self._originals))
            self.dates = self._for_each(self._originals, _date, UNKNOWN_DATE)
        elif self._originals is not None:
            self._read_in_order(self._originals)
        self._look_at_all()

    def _look_at_all(self) -> None:
        rows, some, every = self._features
        if some is None or every is None:
            return
        try:
            found = look_at_all(self._n_images, rows, some, every, self._go_on)
        except InputError as error:  # of a damaged file: what the sample tells stays
            self.note = str(error)
        else:
            self.by_features = ByFeatures(*found)

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise _Stopped

    def _read_in_order(self, originals: Originals) -> None:
        row_of = dict(zip(originals.places.tolist(), range(self._n_images), strict=True))
        labels, dates = np.full(self._n_images, -1), np.full(self._n_images, UNKNOWN_DATE)
        for place, original in enumerate(originals.in_order()):
            self._go_on()
            if place in row_of:
                row = row_of[place]
                labels[row] = _content(original, -1)
                dates[row] = _date(original, UNKNOWN_DATE)
        self.dates = dates
        self._keep_copies(grouped(_told_apart(labels)))

    def _keep_copies(self, groups: list[NDArray[np.int64]]) -> None:
        n_copies = np.ones(self._n_images, np.int64)
        for group in groups:
            n_copies[group] = len(group)
        self.n_copies, self.copies = n_copies, groups

    def _copies_of_files(self, originals: Originals) -> list[NDArray[np.int64]]:
        """Only files of equal size are read."""
        sizes = self._for_each(originals, _size, -1)
        labels = -1 - np.arange(self._n_images)
        for group in grouped(sizes):
            if sizes[group[0]] >= 0:
                labels[group] = self._for_each(originals, _content, -1, group.tolist())
        return grouped(_told_apart(labels))

    def _for_each(
        self,
        originals: Originals,
        find: Callable[[Original, int], int],
        otherwise: int,
        rows: Sequence[int] | None = None,
    ) -> NDArray[np.int64]:
        rows = range(self._n_images) if rows is None else rows
        found = np.empty(len(rows), np.int64)

        def look(at: int) -> None:
            self._go_on()
            found[at] = find(originals.of(rows[at]), otherwise)

        with ThreadPoolExecutor(max(1, available_cores() // 2)) as pool:
            for start in range(0, len(rows), _AT_ONCE):
                list(pool.map(look, range(start, min(start + _AT_ONCE, len(rows)))))
        return found


@contextmanager
def _in_the_background() -> Iterator[None]:
    """On one core, and after whoever looks at the page, where the system lets a thread wait."""
    from threadpoolctl import threadpool_limits

    with suppress(AttributeError, OSError):  # elsewhere than on Linux it would be the whole process
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    with threadpool_limits(1):
        yield


class _Stopped(Exception):  # noqa: N818 - the server ends
    pass


def _told_apart(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Images that cannot be read are nobody's copies."""
    unread = labels == -1
    labels[unread] = -1 - np.flatnonzero(unread)
    return labels


def _size(original: Original, otherwise: int) -> int:
    try:
        return os.stat(original).st_size if isinstance(original, Path) else otherwise  # noqa: PTH116
    except OSError:
        return otherwise


def _date(original: Original, otherwise: int) -> int:
    taken = date_taken(original) if isinstance(original, Path | bytes) else None
    return otherwise if taken is None else taken


def _content(original: Original, otherwise: int) -> int:
    """63 bits of a digest: in a million images no two share them by chance."""
    if isinstance(original, BadImage):
        return otherwise
    if isinstance(original, Path):
        try:
            digest = file_digest(original)
        except OSError:
            return otherwise
    else:
        content = original if isinstance(original, bytes) else original.tobytes()
        digest = hashlib.sha256(content).hexdigest()
    return int(digest[:16], 16) >> 1
