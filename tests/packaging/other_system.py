"""The command line on what Windows has of `os`: the rest is missing, or fails as it does there.

This is not Windows: its paths, locks, console and torch are not here. Libraries keep their own way.
"""

import errno
import fcntl
import importlib
import os
import pkgutil
import stat
import sys
import types
from contextlib import suppress
from itertools import pairwise

_ABSENT = (
    *("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "uname", "sched_getaffinity"),
    *("preadv", "pread", "posix_fadvise", "fork", "mkfifo", "getuid", "getpgid", "killpg"),
)
_ABSENT_MODULES = ("triton", "resource", "termios", "tty", "pty", "pwd", "grp")
_LIBRARIES = (
    *("torch", "sklearn.cluster", "sklearn.utils.validation", "scipy.optimize", "pyarrow.parquet"),
    *("filelock", "rich.progress", "typer", "PIL.Image", "matplotlib.figure", "jinja2", "requests"),
    *("platformdirs", "joblib", "safetensors.torch", "torch.distributed"),
)


def _open(path, flags, *rest, **how):
    if os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return os.open(path, flags, *rest, **how)


def _fsync(descriptor):
    if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_RDWR | os.O_WRONLY):
        raise OSError(errno.EBADF, "Bad file descriptor")
    os.fsync(descriptor)


def _utime(path, *rest, follow_symlinks=True, **how):
    if not follow_symlinks:
        raise NotImplementedError("utime: follow_symlinks unavailable on this platform")
    os.utime(path, *rest, **how)


def _refuse_open_file(path) -> None:
    """Nothing takes the place of a file that this process has open, or removes it."""
    with suppress(FileNotFoundError):
        wanted = os.stat(path)  # noqa: PTH116
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
            with suppress(FileNotFoundError):
                held = os.stat(f"/proc/self/fd/{name}")  # noqa: PTH116
                if stat.S_ISREG(held.st_mode) and os.path.samestat(held, wanted):
                    raise PermissionError(errno.EACCES, "Access is denied", str(path))


def like_windows() -> types.ModuleType:
    less = types.ModuleType("os")
    vars(less).update({name: each for name, each in vars(os).items() if name not in _ABSENT})
    less.name, less.O_BINARY = "nt", 0
    less.open, less.fsync, less.utime = _open, _fsync, _utime
    less.supports_follow_symlinks = {os.stat}
    return less


def take_away() -> None:
    """Before our modules are imported, and after the libraries are."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for name in _ABSENT_MODULES:
        sys.modules[name] = None
    plain_replace = os.replace

    def replace(source, target, **how):
        _refuse_open_file(target)
        plain_replace(source, target, **how)

    os.replace = replace  # which pathlib calls
    sys.modules["os"] = like_windows()
    import dcdc

    for module in pkgutil.walk_packages(dcdc.__path__, "dcdc."):
        with suppress(ImportError):  # kernels, which need Triton
            if module.name != "dcdc.__main__":
                importlib.import_module(module.name)
    sys.modules["os"] = os


def commands(words: list[str]) -> list[list[str]]:
    """What stands between two `then`."""
    at = [-1, *(place for place, word in enumerate(words) if word == "then"), len(words)]
    return [words[begin + 1 : end] for begin, end in pairwise(at)]


if __name__ == "__main__":
    take_away()
    from dcdc.cli import main

    for command in commands(sys.argv[1:]):
        sys.argv[1:] = command
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
