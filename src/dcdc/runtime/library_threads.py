"""How many threads NumPy and scikit-learn take."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_limited: ContextVar[tuple[int, bool] | None] = ContextVar("limited", default=None)
"""Within a block, in its own thread: to how many threads, and whether scikit-learn was there."""


@contextmanager
def library_threads() -> Iterator[None]:
    """NumPy's and scikit-learn's threads inside the block are as many as torch's.

    Whether `cpu_threads` reaches them by itself depends on which library was imported first, and
    K-Means adds up in another order with another number of threads: a seed had two answers.
    To look which libraries are loaded takes two milliseconds: a block within another, for as many
    threads, looks again only where scikit-learn has been loaded in between.
    """
    import torch  # two seconds that who only reads a run folder does not wait for

    wanted = torch.get_num_threads(), "sklearn.cluster" in sys.modules
    if _limited.get() == wanted:
        yield
        return
    from threadpoolctl import threadpool_limits

    before = _limited.set(wanted)
    try:
        with threadpool_limits(wanted[0]):
            yield
    finally:
        _limited.reset(before)
