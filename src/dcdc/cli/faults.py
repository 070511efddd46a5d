"""Faults become one clear line on stderr and an exit code: 2 for wrong use, 130 after Ctrl-C."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NoReturn

import typer

from dcdc.cli.words import COMMAND_LINE
from dcdc.errors import InputError, PeerLostError, TrainingError, out_of_means
from dcdc.printable import shown
from dcdc.runtime.launch import Launch, read_launch

_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]
"""ClickException, of click or of the copy that newer versions of typer have of it."""
SIGNAL_EXIT = {"SIGINT": 130, "SIGTERM": 143}


class _Terminated(BaseException):
    """SIGTERM, where nobody takes it for a wish to stop between two steps."""


@contextmanager
def exit_codes() -> Iterator[None]:
    try:
        with _unwinding_at_sigterm(), _own_end_of_pipe():
            yield
    except InputError as error:
        stop(error.told(COMMAND_LINE), 2)
    except TrainingError as error:
        stop(error.told(COMMAND_LINE), 1)
    except PeerLostError as error:
        stop(str(error), 1)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    except _Terminated:
        stop("terminated", 143)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        _write_nowhere(sys.stdout.fileno())  # or what is left would be tried again at the end
        sys.exit(0)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        stop(
            f"cannot read or write{where}: {error.strerror or error}; what was written before "
            "stays, so mend this and go on with --resume",
            2,
        )
    except (MemoryError, RuntimeError) as error:
        known = out_of_means(error)
        if known is None:
            raise
        stop(known.told(COMMAND_LINE), 2)


@contextmanager
def _unwinding_at_sigterm() -> Iterator[None]:
    """So that what is half-written goes. Processes of torchrun end at once: others wait for it."""
    if "RANK" in os.environ or threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(*_: object) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _own_end_of_pipe() -> Iterator[None]:
    """Click would say 1 for it."""
    try:
        yield
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise


def _write_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def in_one_line(app: typer.Typer) -> NoReturn:
    """Runs a command, and tells what was mistyped as any other fault is."""
    try:
        code = app(
            prog_name="dcdc", standalone_mode=False
        )  # typer's own line would hold the argument as it came
    except _CLICK_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            sys.exit(2)
        asked = error.ctx.command_path if getattr(error, "ctx", None) else "dcdc"
        stop(f"{error.format_message().rstrip('.')}: see {asked} -h", 2)
    if code == SIGNAL_EXIT["SIGINT"]:  # what typer makes of Ctrl-C
        raise KeyboardInterrupt
    sys.exit(code)


def stop(message: str, code: int) -> NoReturn:
    """A message is one line, whatever a library put into it, and of several processes one's."""
    line = shown(" ".join(message.split()))
    try:
        launch = read_launch()
    except InputError:
        launch = Launch()
    if launch.is_several:
        from dcdc.runtime.launch import may_tell

        if may_tell(launch):
            who = f"process {launch.rank} of {launch.size}: " if launch.rank else ""
            print(f"dcdc: {who}{line}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # whatever still waits for another process would wait in vain
    print(f"dcdc: {line}", file=sys.stderr)
    sys.exit(code)


@contextmanager
def first_speaks() -> Iterator[None]:
    """Of several processes the others are silent, but for their faults."""
    if read_launch().rank == 0:
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):  # noqa: PTH123
        yield
