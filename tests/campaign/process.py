"""A command or a call in a process of its own, forked from one that has imported everything.

A fork costs a few milliseconds, so every input has a process: a crash, a hang or a kill is its own.
"""

import importlib.metadata
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow
import threadpoolctl
import torch
import typer.main

HANG_SECONDS = 10.0
MEMORY = 4 << 30
"""What a process may ask for beside what it was forked with."""
_SILENCED = ("COLUMNS", "300"), ("DCDC_BACKBONE", "scratch"), ("NO_COLOR", "1")


@dataclass(frozen=True)
class Ended:
    code: int
    """Below zero: ended by that signal."""
    out: str
    err: str
    hung: bool = False


def warm() -> None:
    """Imports what verbs import, so that forks begin with it."""
    import dcdc.cli
    import dcdc.cli.progress
    import dcdc.cli.reading
    import dcdc.data.benchmarks.catalogue
    import dcdc.estimator
    import dcdc.phases.byol
    import dcdc.phases.contrast
    import dcdc.phases.heads
    import dcdc.phases.self_label
    import dcdc.prediction.session
    import dcdc.prepare.prepare_run
    import dcdc.report.figures
    import dcdc.run

    for group in ("backbones", "losses", "methods", "panels", "phases", "sources"):
        _installed(group=f"dcdc.{group}")
    _parser(dcdc.cli.app)
    _pools()


_installed = lru_cache(importlib.metadata.entry_points)
_parser = lru_cache(typer.main.get_command)


@lru_cache
def _pools() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def _be_quick() -> None:
    """In a child: one thread each, and without what takes longer than the verbs themselves.

    Packages that are installed stay as they are, and figures have tests of their own.
    """
    import dcdc.registry
    import dcdc.report.figures

    torch.set_num_threads(1)
    pyarrow.set_cpu_count(1)
    _pools().limit(limits=1)
    typer.main.get_command = _parser
    dcdc.registry.entry_points = _installed
    dcdc.report.figures._encoded = _undrawn


_DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63600000000200014ae2e3bf0000000049454e44ae426082"
)
_NOTHING = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"></svg>'


def _undrawn(figure: object, kind: str) -> bytes:  # noqa: ARG001
    return _NOTHING if kind == "svg" else _DOT


def run_verb(arguments: Sequence[object]) -> None:
    """The command line, as a process of its own would have it."""
    from dcdc.cli import main

    sys.argv = ["dcdc", *map(str, arguments)]
    main()


class Child:
    """`work` in a process whose working directory is `folder`."""

    def __init__(
        self,
        work: Callable[[], object],
        folder: Path,
        *,
        cache: Path | None = None,
        memory: int = MEMORY,
    ) -> None:
        self._said = Path(tempfile.mkdtemp(prefix="said-", dir=folder.parent))
        self._number = os.fork()
        if self._number == 0:
            _be_the_child(work, folder, self._said, cache, memory)

    def is_running(self) -> bool:
        return os.waitid(os.P_PID, self._number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def ended(self, seconds: float = HANG_SECONDS) -> Ended:
        """Waits for its end, and ends it after so many."""
        try:
            code = _wait(self._number, seconds)
            out, err = (
                (self._said / name).read_bytes().decode("utf-8", "replace")
                for name in ("out", "err")
            )
            return Ended(code or 0, out, err, hung=code is None)
        finally:
            shutil.rmtree(self._said, ignore_errors=True)


def call(
    work: Callable[[], object],
    folder: Path,
    *,
    cache: Path | None = None,
    seconds: float = HANG_SECONDS,
    memory: int = MEMORY,
) -> Ended:
    return Child(work, folder, cache=cache, memory=memory).ended(seconds)


def _be_the_child(
    work: Callable[[], object], folder: Path, said: Path, cache: Path | None, memory: int
) -> None:
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, name in ((1, "out"), (2, "err")):
            (said / name).touch()
            os.dup2(os.open(said / name, os.O_WRONLY | os.O_APPEND), number)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        os.environ.update(_SILENCED)
        if cache is not None:
            os.environ["DCDC_DATA"] = str(cache)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            limit = _mapped() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        _be_quick()
        work()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _mapped() -> int:
    pages = Path("/proc/self/statm").read_text().split()[0]
    return int(pages) * resource.getpagesize()


def _wait(child: int, seconds: float) -> int | None:
    """The exit code; None where it had to be killed."""
    watch = os.pidfd_open(child)
    try:
        ended = select.select([watch], [], [], seconds)[0]
        if not ended:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if ended else None
    finally:
        os.close(watch)
