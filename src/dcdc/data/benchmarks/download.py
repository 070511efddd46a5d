"""A benchmark's files brought here: resumed when cut, checked, unpacked whole or not at all.

Beside a file that is not whole yet lie `NAME.part` and `NAME.part.validator`, the ETag or date of
the file that the part is of.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dcdc.data.benchmarks.archives import unpack
from dcdc.data.benchmarks.catalogue import (
    Benchmark,
    RemoteFile,
    folder_of,
    how_to_place,
    is_here,
    is_placed,
)
from dcdc.data.cache_folder import VARIABLE, keeping
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import file_lock, remove_leftovers, write_text
from dcdc.runtime.owners import own_mark
from dcdc.stored.reading import file_digest

WAITS = (1.0, 3.0, 10.0, 30.0)
"""Seconds before each further try in a row that brings nothing new."""

Progress = Callable[[str, int, int], None]  # (what is done, bytes so far, of how many or 0)

_WAITING = "waiting for another process that gets the same"
_TIMEOUTS = (5, 60)  # seconds to connect, and between two pieces
_PIECE_BYTES = 2**16
_PASSING_STATUS = (429, 500, 502, 503, 504)


def _ignore(*_: Any) -> None:
    pass


def fetch(
    benchmark: Benchmark,
    progress: Progress | None = None,
    *,
    waits: Sequence[float] = WAITS,
) -> Path:
    """The benchmark's folder, with what was missing downloaded, checked and unpacked.

    Stopped half-way, by a fault or by Ctrl-C, it leaves nothing that passes for the data set, and
    the next call goes on. A file placed there by hand is checked and used.
    """
    tell = progress or _ignore
    folder = folder_of(benchmark)
    if benchmark.by_hand and not is_here(benchmark):
        raise InputError(f"{benchmark.name} is not here: {how_to_place(benchmark)}")
    with keeping("downloads", folder):
        if not is_here(benchmark):
            folder.mkdir(parents=True, exist_ok=True)
            with file_lock(folder.with_suffix(".lock"), partial(tell, _WAITING, 0, 0)):
                remove_leftovers(folder)
                _require_room(benchmark, folder)
                for file in benchmark.files:
                    if not is_placed(file, folder):
                        _place(benchmark, file, folder, tell, waits)
        for file in benchmark.files:
            if not file.unpacks_to:
                _check(file, folder / file.name)
    return folder


def _require_room(benchmark: Benchmark, folder: Path) -> None:
    needed = 0
    for file in benchmark.files:
        if not is_placed(file, folder):
            needed += file.unpacked_bytes
            if not (folder / file.name).exists():
                needed += max(0, file.n_bytes - _size(_part_of(file, folder)))
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{benchmark.name} needs {needed / 1e9:.2f} GB more, {folder} has {free / 1e9:.2f} GB "
            f"free: make room, or name another folder by {VARIABLE}"
        )


def _place(
    benchmark: Benchmark,
    file: RemoteFile,
    folder: Path,
    tell: Progress,
    waits: Sequence[float],
) -> None:
    path = folder / file.name
    if path.exists():
        _check(file, path)
    else:
        _retrieve(benchmark, file, folder, tell, waits)
    _forget(_part_of(file, folder))
    if file.unpacks_to:
        tell(f"unpacking {file.name}", 0, 0)
        with TemporaryDirectory(prefix=".", suffix=f".{own_mark()}.partial", dir=folder) as staging:
            unpacked = Path(staging) / "unpacked"
            unpack(path, unpacked)
            if sys.platform != "win32":
                os.sync()  # the bytes before the name that vouches for them
            (unpacked / file.unpacks_to).rename(folder / file.unpacks_to)
        path.unlink()


def _check(file: RemoteFile, path: Path) -> None:
    found = file_digest(path, "md5")
    if found != file.md5:
        raise InputError(
            f"{path} has the md5 {found}, not {file.md5}: remove it, then dcdc data get downloads "
            f"it from {file.url}"
        )


def _retrieve(
    benchmark: Benchmark, file: RemoteFile, folder: Path, tell: Progress, waits: Sequence[float]
) -> None:
    """Downloads under another name; the file's own is given once its check sum is right."""
    part = _part_of(file, folder)
    _fill(part, file, benchmark, tell, waits)
    found = file_digest(part, "md5")
    if found != file.md5:
        _forget(part)
        raise InputError(
            f"{file.url} sent a file with the md5 {found}, not {file.md5}, which was removed: "
            f"try again later, or {how_to_place(benchmark)}"
        )
    part.replace(folder / file.name)


def _fill(
    part: Path, file: RemoteFile, benchmark: Benchmark, tell: Progress, waits: Sequence[float]
) -> None:
    """Gets what `part` lacks, in as many tries as bring something new. A server that was never
    reached is not waited for: most likely there is no network."""
    most = _size(part)
    pauses, was_reached = iter(waits), False
    while _size(part) < file.n_bytes:
        try:
            fault = _try_once(part, file, benchmark, tell)
            was_reached = True
        except _NotReachedError as error:
            fault = str(error)
        if fault is None:
            return
        if _size(part) > most:
            most, pauses = _size(part), iter(waits)
        pause = next(pauses, None) if was_reached else None
        if pause is None:
            raise _unavailable(file, benchmark, fault)
        if pause:
            tell(f"{file.name}: {fault}; trying again in {pause:g} s", 0, 0)
        time.sleep(pause)


class _NotReachedError(Exception):
    """No connection to the server came about."""


def _try_once(part: Path, file: RemoteFile, benchmark: Benchmark, tell: Progress) -> str | None:
    """None when the server has sent all, else why another try may bring more."""
    import requests
    import urllib3

    start, validator = _size(part), _validator_of(part)
    headers = {"Accept-Encoding": "identity"}
    if start and validator:
        headers |= {"Range": f"bytes={start}-", "If-Range": validator}
    try:
        with requests.get(file.url, headers=headers, stream=True, timeout=_TIMEOUTS) as response:
            status = response.status_code
            if status == 416 and "Range" in headers:
                _forget(part)
                return "the server's file is shorter than what was here"
            if status in _PASSING_STATUS:
                return f"it answers {status} {response.reason}"
            if status not in (200, 206):
                raise _unavailable(file, benchmark, f"it answers {status} {response.reason}")
            sent = _sent_validator(response.headers)
            if status == 206 and not _goes_on(response.headers, start, sent, validator):
                _forget(part)
                return "the file changed on the server meanwhile"
            if status == 200:
                _forget(part)
                write_text(_validator_file(part), sent)
            done = _size(part)
            with part.open("ab") as out:
                # as sent: a server may call a .gz a mere encoding of something else
                for piece in response.raw.stream(_PIECE_BYTES, decode_content=False):
                    out.write(piece)
                    done += len(piece)
                    tell(file.name, done, file.n_bytes)
                    if done > file.n_bytes:
                        return None  # another file, perhaps without an end; its check sum will say
            is_all = done == file.n_bytes or "Content-Length" in response.headers
            return None if is_all else "the connection ended early"
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        cause = _innermost(error)
        told = re.sub(r"^HTTPS?Connection\w*\(.*?\): ", "", str(cause)) or type(cause).__name__
        faults = urllib3.exceptions
        if isinstance(cause, faults.NewConnectionError | faults.ConnectTimeoutError):
            raise _NotReachedError(f"no connection ({told})") from None
        return f"the connection was cut ({told})"


def _goes_on(headers: Mapping[str, str], start: int, sent: str, validator: str) -> bool:
    """Whether a partial answer is the rest of the file that the part is of."""
    of_range = re.match(r"bytes (\d+)-", headers.get("Content-Range", ""))
    return (
        of_range is not None and int(of_range[1]) == start > 0 and (not sent or sent == validator)
    )


def _sent_validator(headers: Mapping[str, str]) -> str:
    """A strong ETag or the date; "" when the server gives neither, and nothing can be resumed."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _innermost(error: Exception) -> Exception:
    """What the network said, without the libraries' wrapping."""
    inner = (getattr(error, "reason", None), *error.args)
    for cause in inner:
        if isinstance(cause, Exception):
            return _innermost(cause)
    return error


def _unavailable(file: RemoteFile, benchmark: Benchmark, fault: str) -> InputError:
    return InputError(
        f"cannot get {file.url}: {fault}; try again later (what has arrived is kept), or "
        f"{how_to_place(benchmark)}"
    )


def _part_of(file: RemoteFile, folder: Path) -> Path:
    return folder / f"{file.name}.part"


def _validator_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.validator")


def _validator_of(part: Path) -> str:
    try:
        return _validator_file(part).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_file(part).unlink(missing_ok=True)
