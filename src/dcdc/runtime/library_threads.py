"""How many threads NumPy and scikit-learn take."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def library_threads() -> Iterator[None]:
    """NumPy's and scikit-learn's threads inside the block are as many as torch's.

    Whether `cpu_threads` reaches them by itself depends on which library was imported first, and
    K-Means adds up in another order with another number of threads: a seed had two answers.
    """
    import torch  # two seconds that who only reads a run folder does not wait for
    from threadpoolctl import threadpool_limits

    with threadpool_limits(torch.get_num_threads()):
        yield
