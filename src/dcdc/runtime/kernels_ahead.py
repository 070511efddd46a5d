"""Triton kernels compiled before their first launch, several at a time.

A step of a deep backbone launches some forty kernels of ours. Compiled one by one as they are met,
they take 18 s on a fresh machine; ahead, in threads, all cores take part, and cuDNN's search for
algorithms goes on meanwhile.
"""

import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

_THREADS = 16
_asked: contextvars.Context | None = None
"""In which a kernel is compiled instead of launched. A plain global: autograd runs the backward
pass in a thread of its own, which has no part in the context of the thread that began it."""


def launch(kernel: Any, grid: tuple[int, ...], *arguments: object, **options: Any) -> None:
    """Launches it, or has it compiled for these arguments: within `kernels_ahead`."""
    if _asked is None:
        kernel[grid](*arguments, **options)
    else:
        _asked.copy().run(kernel.warmup, *arguments, grid=grid, **options)


def build_kernels_of(function: Callable[[], object]) -> None:
    """Runs it once without the kernels that it launches by `launch`, and compiles those. What it
    computes is void, and has to be undone."""
    mode = _compile_mode()
    if mode is None:
        return
    global _asked
    with ThreadPoolExecutor(_THREADS) as threads, mode(threads, ignore_errors=True):
        _asked = contextvars.copy_context()
        try:
            function()
        finally:
            _asked = None


@contextmanager
def launching() -> Iterator[None]:
    """Kernels are launched inside the block, wherever it is."""
    global _asked
    before, _asked = _asked, None
    try:
        yield
    finally:
        _asked = before


def _compile_mode() -> Any:
    """Triton's way to compile in threads; None where there is no Triton, or an older one."""
    try:
        import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    return getattr(triton, "AsyncCompileMode", None)
