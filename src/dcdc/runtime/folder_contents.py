"""What a folder of ours consists of: nothing else in it is ever removed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from dcdc.runtime.atomic_files import is_leftover
from dcdc.runtime.folder_lock import LOCK


@dataclass(frozen=True)
class Contents:
    patterns: tuple[str, ...]
    """Of files, with the folders that lead to them: `figures/*.png`. They go in this order."""

    def folders(self) -> list[str]:
        """Those that lie in it."""
        return sorted({pattern.split("/")[0] for pattern in self.patterns if "/" in pattern})

    def strangers(self, folder: Path) -> Iterator[Path]:
        """What the patterns do not name; locks and what killed writers left are nobody's."""
        return self._strangers(folder, ())

    def _strangers(self, folder: Path, inside: tuple[str, ...]) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            parts = (*inside, path.name)
            if is_leftover(path.name) or path.name == LOCK:
                continue
            if path.is_dir() and not path.is_symlink():
                if any(_matches(pattern, parts, whole=False) for pattern in self.patterns):
                    yield from self._strangers(path, parts)
                else:
                    yield path
            elif not any(_matches(pattern, parts, whole=True) for pattern in self.patterns):
                yield path

    def remove(self, folder: Path) -> None:
        """Every file that a pattern names, then folders that led to it and are empty.

        A link goes as a link; what it leads to stays."""
        for pattern in self.patterns:
            for file in sorted(folder.glob(pattern)):
                if _is_inside(file, folder) and (file.is_symlink() or not file.is_dir()):
                    file.unlink()
            for above in list(Path(pattern).parents)[:-1]:
                for emptied in sorted(folder.glob(str(above))):
                    if _is_own_folder(emptied, folder) and not os.listdir(emptied):  # noqa: PTH208
                        emptied.rmdir()


def _is_inside(path: Path, folder: Path) -> bool:
    """Not by way of a link."""
    between = path.relative_to(folder).parents
    return not any((folder / above).is_symlink() for above in between)


def _is_own_folder(path: Path, folder: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and _is_inside(path, folder)


def _matches(pattern: str, parts: tuple[str, ...], *, whole: bool) -> bool:
    """Whether the parts of a path are as the pattern says; not `whole`: as its beginning says."""
    wanted = pattern.split("/")
    fits = len(parts) == len(wanted) if whole else len(parts) < len(wanted)
    return fits and all(map(fnmatchcase, parts, wanted))
