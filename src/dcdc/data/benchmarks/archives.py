"""`.tar.gz` and `.zip` archives, unpacked without trust: plain files and folders, in one place."""

import gzip
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from dcdc.errors import InputError

MAX_MEMBERS = 1_000_000
_MAX_GROWTH, _GROWTH_FREE_BYTES = 8, 64 * 2**20  # images hardly shrink: eightfold is no data set
_CHUNK_BYTES = 2**20
_FILE_OR_FOLDER = (0, stat.S_IFREG, stat.S_IFDIR)  # 0: made where files have no Unix mode


def unpack(
    archive: Path, target: Path, *, max_bytes: int | None = None, max_members: int = MAX_MEMBERS
) -> None:
    """Fills `target`, a new folder, or leaves none; modes and times of the archive are not kept.

    `max_bytes` bounds what comes out, counted as it comes, whatever the headers say.
    """
    target.mkdir(parents=True)
    try:
        with _faults_of(archive):
            if max_bytes is None:
                max_bytes = _MAX_GROWTH * archive.stat().st_size + _GROWTH_FREE_BYTES
            budget = _Budget(archive, max_bytes, max_members)
            unpack_one = _unpack_zip if archive.suffix.lower() == ".zip" else _unpack_tar
            unpack_one(archive, target, budget)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


class _Budget:
    def __init__(self, archive: Path, n_bytes: int, n_members: int) -> None:
        self.archive, self.n_bytes, self.n_members = archive, n_bytes, n_members
        self.bytes_left, self.members_left = n_bytes, n_members

    def member(self) -> None:
        self.members_left -= 1
        if self.members_left < 0:
            self._refuse(f"more than {self.n_members:,} files")

    def spend(self, piece: bytes) -> bytes:
        self.bytes_left -= len(piece)
        if self.bytes_left < 0:
            self._refuse(f"more than {self.n_bytes:,} bytes")
        return piece

    def _refuse(self, what: str) -> None:
        raise InputError(
            f"{self.archive} unpacks to {what}, perhaps a decompression bomb: get it again from "
            "its source"
        )


class _Readable(Protocol):
    def read(self, n_bytes: int, /) -> bytes: ...


class _Metered:
    """Decompressed bytes, a tar's headers among them, as they are read."""

    def __init__(self, stream: _Readable, budget: _Budget) -> None:
        self.stream, self.budget = stream, budget

    def read(self, n_bytes: int, /) -> bytes:
        return self.budget.spend(self.stream.read(n_bytes))


def _unpack_tar(archive: Path, target: Path, budget: _Budget) -> None:
    with gzip.open(archive) as stream:
        metered = _Metered(stream, budget)
        with tarfile.open(fileobj=metered, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                budget.member()
                place = _place(archive, target, member.name)
                if not (member.isreg() or member.isdir()) or member.issparse():
                    raise _refusal(archive, member.name, "is no plain file or folder")
                _second_opinion(archive, target, member)
                if member.isdir():
                    _make_folder(archive, member.name, place)
                else:
                    contents = tar.extractfile(member)
                    assert contents is not None
                    _write(archive, member.name, contents, place)
            _refuse_unless_padding(tar)


def _refuse_unless_padding(tar: tarfile.TarFile) -> None:
    """A bad header looks like the end to tarfile; and gzip's check sum comes after the padding."""
    assert tar.fileobj is not None
    while piece := tar.fileobj.read(_CHUNK_BYTES):
        if piece.strip(b"\0"):
            raise tarfile.ReadError("a header is damaged")


def _unpack_zip(archive: Path, target: Path, budget: _Budget) -> None:
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            budget.member()
            name = member.orig_filename  # `filename` ends at a null byte
            place = _place(archive, target, name)
            if stat.S_IFMT(member.external_attr >> 16) not in _FILE_OR_FOLDER:
                raise _refusal(archive, name, "is no plain file or folder")
            if member.flag_bits & 1:
                raise _refusal(archive, name, "is encrypted")
            if member.is_dir():
                _make_folder(archive, name, place)
            else:
                with zipped.open(member) as contents:
                    _write(archive, name, _Metered(contents, budget), place)


def _place(archive: Path, target: Path, name: str) -> Path:
    """Where a member goes; what Windows takes for a path counts too, whichever system this is."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or any(trick in name for trick in "\\:\0"):
        raise _refusal(archive, name, "has a path that may lead out of the folder")
    return target.joinpath(*parts)


def _second_opinion(archive: Path, target: Path, member: tarfile.TarInfo) -> None:
    data_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it first
    if data_filter is not None:
        try:
            data_filter(member, str(target))
        except tarfile.TarError as error:
            raise _refusal(archive, member.name, f"is not safe ({error})") from None


def _make_folder(archive: Path, name: str, place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _refusal(archive, name, "is there twice") from None


def _write(archive: Path, name: str, contents: _Readable, place: Path) -> None:
    _make_folder(archive, name, place.parent)
    try:
        file = place.open("xb")  # never over another: also where names differ by case alone
    except FileExistsError:
        raise _refusal(archive, name, "is there twice") from None
    with file:
        while piece := contents.read(_CHUNK_BYTES):
            file.write(piece)


def _refusal(archive: Path, name: str, what: str) -> InputError:
    shown = name.encode("unicode_escape", "replace").decode()
    return InputError(f"{archive} is refused: its member {shown} {what}; get it again")


@contextmanager
def _faults_of(archive: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile) or error.errno is None:
            raise _damaged(archive, error) from None
        raise InputError(
            f"cannot unpack {archive}: {error.strerror}; make room or check the permissions"
        ) from None
    except Exception as error:  # whatever a damaged file makes the parsers raise
        raise _damaged(archive, error) from None


def _damaged(archive: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(f"{archive} is damaged or cut short ({reason}): remove it and get it again")
