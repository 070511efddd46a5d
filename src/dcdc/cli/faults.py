"""Faults become one clear line on stderr and an exit code: 2 for wrong use, 130 after Ctrl-C."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from dcdc.errors import InputError, TrainingError

SIGNAL_EXIT = {"SIGINT": 130, "SIGTERM": 143}


@contextmanager
def exit_codes() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        stop(str(error), 2)
    except TrainingError as error:
        stop(str(error), 1)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        stop(
            f"cannot read or write{where}: {error.strerror or error}; what was written before "
            "stays, so mend this and go on with --resume",
            2,
        )


def stop(message: str, code: int) -> NoReturn:
    """A message is one line, whatever a library put into it."""
    print(f"dcdc: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
