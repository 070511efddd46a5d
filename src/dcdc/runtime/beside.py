"""A computation beside another, in a thread: for what spends its time outside of Python."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def beside(compute: Callable[[], T]) -> Callable[[], T]:
    """Starts at once; what comes back waits for the result, or raises what was raised.

    Neither Ctrl-C nor the end of the process waits for it, as they would for a pool's threads.
    """
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(compute())
        except BaseException as error:
            found.set_exception(error)

    Thread(target=run, name="beside", daemon=True).start()
    return found.result
