"""One argument, any source: a name, a folder, Parquet, a list, an image or a NumPy file, or image
files one by one -> ImageSet.

Sources of feature vectors are known here and refused; `load_data` reads them too.
"""

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dcdc.data.arrays import from_arrays, load_array_file
from dcdc.data.benchmarks.catalogue import BENCHMARKS, Benchmark, folder_of, how_to_place, is_here
from dcdc.data.benchmarks.original_files import recognised
from dcdc.data.decoded import LARGEST_SIDE, Progress, check_on_bad, decode_listing
from dcdc.data.folder import image_extensions, list_folder
from dcdc.data.image_set import ImageSet, check_side, numbered_names
from dcdc.data.listing import Listing
from dcdc.data.parquet import list_parquet
from dcdc.data.parquet_labels import label_column_of as parquet_label_column_of
from dcdc.data.parquet_labels import label_columns as parquet_label_columns
from dcdc.data.path_list import list_files, list_paths
from dcdc.data.vector_files import holds_vectors, load_vectors
from dcdc.data.vector_rows import Reading
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError, no_meaning
from dcdc.registry import Registry
from dcdc.runtime.environment import expanded

BUILT_IN = ("digits", *BENCHMARKS)
Given = str | Path | Sequence[Path]
"""A source's name, or image files one by one."""
_LISTS = (".csv", ".tsv", ".txt", ".lst")
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")


def load_images(
    source: Given,
    *,
    size: int | None = None,
    channels: int | None = None,
    largest_side: int = LARGEST_SIDE,
    target: str | None = None,
    on_bad: str = "refuse",
    progress: Progress | None = None,
    on_wait: Callable[[], None] | None = None,
) -> ImageSet:
    """Load any source of images; they come out square, their centre kept, resized to `size`.

    Without a `size`, encoded images get a usual side up to `largest_side`, arrays keep theirs.
    `channels` are for encoded images, too: without it, colours where any of them has some.

    A benchmark is `NAME`, `NAME@SPLIT+SPLIT`, and `NAME:FOLDER` for files that lie elsewhere. A
    built-in name wins over a file or folder of that name; `./digits`, or a Path that exists, means
    the latter. `target` names the label column of Parquet or of a list ("none": no labels).
    `on_wait` is called when another process is decoding the same images. Files one by one are
    not kept in the cache: whoever answers for uploads would fill the disk.
    """
    check_side(size)
    check_on_bad(on_bad)
    with readable(source):
        found = find_images(source, size, target)
    if not isinstance(found, ImageSet):
        found = decode_listing(
            found,
            size=size,
            channels=channels,
            largest_side=largest_side,
            on_bad=on_bad,
            progress=progress,
            on_wait=on_wait,
            keep=isinstance(source, str | Path),
        )
    return replace(found, known_as=built_in_name(source))


def given_source(given: Any) -> str | Path | list[Path] | None:
    """What names a source or image files; None for anything else."""
    if isinstance(given, str):
        return given
    if isinstance(given, os.PathLike):
        return Path(given)
    is_row = isinstance(given, Sequence | np.ndarray) and getattr(given, "ndim", 1) == 1
    if is_row and len(given) and all(isinstance(item, str | os.PathLike) for item in given):
        return [Path(item) for item in given]
    return None


@contextmanager
def readable(source: Given) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = repr(str(source)) if isinstance(source, str | Path) else error.filename
        raise InputError(
            f"cannot read {where}: {error.strerror}; check the path and its permissions"
        ) from None


def built_in_name(source: Given) -> str:
    """`cifar10` of `cifar10@test:FOLDER`; empty for what is no built-in set."""
    if not isinstance(source, str | Path):
        return ""
    text, path = str(source), Path(source)
    if isinstance(source, Path) and path.exists():
        return ""
    name = text.partition(":")[0].partition("@")[0]
    return name if text == "digits" or name in BENCHMARKS else ""


def same_source(one: str, other: str) -> bool:
    """Whether two names are of one place: `photos/` and `photos` are."""
    return one == other or _place(one) == _place(other)


def _place(source: str) -> tuple[str, str]:
    is_built_in = bool(built_in_name(source))
    selection, _, where = source.partition(":") if is_built_in else ("", "", source)
    return selection, os.path.realpath(where) if where else ""


@dataclass(frozen=True)
class Source:
    """A kind of source: which texts name one, and the images or feature vectors that it holds."""

    matches: Callable[[str], bool]
    find: Callable[[str, int | None, str | None], ImageSet | Listing | VectorSet]
    """Of the text, the side that was asked for, and the label column (`target`)."""
    has_vectors: Callable[[str, str | None], bool] = lambda text, column: False  # noqa: ARG005
    """Whether `load_vectors` reads it, which `find` then does not: of the text, and the column."""


SOURCES: Registry[Source] = Registry("kind of source", "dcdc.sources", {})
"""One that is registered from outside is asked before the package's own."""


def find_images(source: Given, size: int | None, target: str | None) -> ImageSet | Listing:
    """What `load_images` decodes, or loads as it is."""
    kind = require_kind(source)
    found = None if kind.has_vectors(str(source), None) else kind.find(str(source), size, target)
    if found is None or isinstance(found, VectorSet):
        raise InputError(f"{source} holds feature vectors, no images: give images here")
    return found


def require_kind(source: Given) -> Source:
    if not isinstance(source, str | Path):
        return _files_one_by_one(source)
    kind = _kind_of(source)
    if kind is None:
        raise _unknown(str(source), Path(source))
    return kind


def _kind_of(source: str | Path) -> Source | None:
    if built_in_name(source):
        return _BUILT_IN
    kinds = (SOURCES.get(name) for name in reversed(SOURCES.names()))
    return next((kind for kind in kinds if kind.matches(str(source))), None)


def _find_built_in(text: str, size: int | None, target: str | None) -> ImageSet | Listing:
    _refuse_target(target, text)
    return load_digits(size) if text == "digits" else _load_benchmark(text, size)


def load_digits(size: int | None = None) -> ImageSet:
    """The set at 8 x 8, or resized; grey values 0..16 are stretched to 0..255."""
    from sklearn import datasets  # half a second that no other source needs

    bunch = datasets.load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    names = numbered_names("digit", len(images))
    return from_arrays(images, bunch.target, names, where="digits", size=size)


def _find_arrays(text: str, size: int | None, target: str | None) -> ImageSet:
    _refuse_target(target, text)
    return load_array_file(Path(text), size)


def _files_one_by_one(files: Sequence[Path]) -> Source:
    where = "the files given"

    def find(_text: str, _size: int | None, target: str | None) -> Listing:
        _refuse_target(target, where)
        for file in files:
            if file.is_dir():
                raise InputError(f"{file} is a folder: give it alone, or image files alone")
        return list_files(files, where)

    return Source(lambda _: True, find)


def _file_of(*suffixes: str) -> Callable[[str], bool]:
    return lambda text: Path(text).is_file() and Path(text).suffix.lower() in suffixes


def require_at_hand(source: str) -> None:
    """Refuses, as `load_images` would, a source that is not there at all; opens no image."""
    text, _, elsewhere = source.partition(":")
    name = text.partition("@")[0]
    if name in BENCHMARKS:
        _files_of(BENCHMARKS[name], elsewhere)
        return
    is_there = source == "digits" or (source and Path(source).exists())
    if not is_there and _kind_of(source) is None:
        raise _unknown(source, Path(source))


def _find_in_folder(folder: Path, size: int | None, target: str | None) -> ImageSet | Listing:
    if _has_parquet(folder):
        return list_parquet(folder, target)
    _refuse_target(target, str(folder))
    name = recognised(folder)
    if name is None:
        return list_folder(folder, with_classes=target is None)
    return _load_benchmark(f"{name}:{folder}", size)


def _has_vectors_below(text: str, column: str | None) -> bool:
    return _has_parquet(Path(text)) and holds_vectors(text, column)


def _has_parquet(folder: Path) -> bool:
    """At the top, or one folder down as on Hugging Face's hub."""
    return any(folder.glob("*.parquet")) or any(folder.glob("*/*.parquet"))


def _load_benchmark(text: str, size: int | None) -> ImageSet | Listing:
    """`NAME[@SPLIT[+SPLIT]][:FOLDER]`, by the paper's protocol where no split is named."""
    selection, _, elsewhere = text.partition(":")
    name, _, wanted = selection.partition("@")
    benchmark = BENCHMARKS[name]
    splits = tuple(wanted.split("+")) if wanted else benchmark.answered
    for split in splits:
        if split not in benchmark.splits:
            raise InputError(
                f"{name} has no split {split!r}: give {' or '.join(benchmark.splits)}, or several "
                "joined by +"
            )
    extra = () if wanted else benchmark.extra
    return benchmark.load(_files_of(benchmark, elsewhere), splits, extra, size)


def _files_of(benchmark: Benchmark, elsewhere: str) -> Path:
    if elsewhere:
        folder = expanded(elsewhere)
        if not folder.is_dir():
            raise InputError(
                f"{benchmark.name} is looked for in {folder}, which is no folder: "
                f"give {benchmark.name}:FOLDER with its original files"
            )
        return folder
    if not is_here(benchmark):
        raise InputError(f"{benchmark.name} is not here yet: {_how_to_get(benchmark)}")
    return folder_of(benchmark)


def _how_to_get(benchmark: Benchmark) -> str:
    if benchmark.by_hand:
        return how_to_place(benchmark)
    return (
        f"dcdc data get {benchmark.name} downloads it ({benchmark.n_bytes / 1e6:,.0f} MB), or name "
        f"a folder with its files as {benchmark.name}:FOLDER"
    )


def _refuse_target(target: str | None, where: str) -> None:
    if target not in (None, "", "none"):
        raise no_meaning("target", target, f"{where}: it names a column of Parquet or of a list")


def _unknown(text: str, path: Path) -> InputError:
    if path.is_file() and path.suffix.lower() in _ARCHIVES:
        return InputError(f"{text} is an archive: unpack it and give the folder")
    fault = "does not exist"
    if path.exists():
        fault = "is of no kind that is read here" if path.is_file() else "is no regular file"
    near = difflib.get_close_matches(text.lower().strip(f"./{os.sep}"), BUILT_IN, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return InputError(
        f"data source {text!r} {fault}: give images or a folder of them, a .parquet, .npy, .npz, "
        f".safetensors, .csv, .tsv or .txt file, or a name from `dcdc data list`{hint}"
    )


def label_columns(source: str | Path) -> list[str]:
    """Columns of a Parquet source that `target` may name; none for any other source."""
    return parquet_label_columns(Path(source)) if _is_parquet(source) else []


def label_column_of(source: str | Path, n_classes: int) -> str | None:
    """Of Parquet whose label column is not plain to see: the only one with so many classes."""
    try:
        return parquet_label_column_of(Path(source), n_classes) if _is_parquet(source) else None
    except OSError:  # the reading itself tells
        return None


def _is_parquet(source: str | Path) -> bool:
    path = Path(source)
    if built_in_name(source) or not path.exists():
        return False
    return _has_parquet(path) if path.is_dir() else path.suffix.lower() == ".parquet"


_BUILT_IN = Source(lambda text: bool(built_in_name(text)), _find_built_in)
SOURCES.register(
    "folder",
    Source(
        lambda text: bool(text) and Path(text).is_dir(),
        lambda text, size, target: _find_in_folder(Path(text), size, target),
        _has_vectors_below,
    ),
)
SOURCES.register(
    "image",
    Source(
        lambda text: _file_of(*(f".{extension}" for extension in image_extensions()))(text),
        lambda text, size, target: _files_one_by_one([Path(text)]).find(text, size, target),
    ),
)
SOURCES.register("arrays", Source(_file_of(".npy", ".npz"), _find_arrays, holds_vectors))
SOURCES.register(
    "parquet",
    Source(
        _file_of(".parquet"),
        lambda text, _, target: list_parquet(Path(text), target),
        holds_vectors,
    ),
)
SOURCES.register(
    "list",
    Source(
        _file_of(*_LISTS), lambda text, _, target: list_paths(Path(text), target), holds_vectors
    ),
)
SOURCES.register(
    "safetensors",
    Source(
        _file_of(".safetensors"),
        lambda text, _, target: load_vectors(text, Reading(target)),
        holds_vectors,
    ),
)
