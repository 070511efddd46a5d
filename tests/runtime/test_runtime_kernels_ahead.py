"""With a stand-in for Triton: no kernel is compiled without a GPU."""

import contextvars
import threading

import pytest

from dcdc.runtime import kernels_ahead
from dcdc.runtime.device import can_build
from dcdc.runtime.kernels_ahead import build_kernels_of, launch

active = contextvars.ContextVar("active", default=None)


class Mode:
    """As triton.AsyncCompileMode."""

    def __init__(self, executor, *, ignore_errors=False):
        self.executor, self.waiting, self.seen = executor, [], set()
        assert ignore_errors

    def submit(self, key, function):
        if key not in self.seen:
            self.seen.add(key)
            self.waiting.append(self.executor.submit(function))

    def __enter__(self):
        active.set(self)

    def __exit__(self, *_):
        for future in self.waiting:
            future.result()
        active.set(None)


class Kernel:
    """Compiled once for each kind of argument, as Triton's."""

    def __init__(self):
        self.compiled_in, self.launched = {}, []

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.launched.append((grid, arguments, options))

    def warmup(self, *arguments, grid, **options):
        assert grid
        key = (*map(type, arguments), *options.items())
        active.get().submit(
            key, lambda: self.compiled_in.setdefault(key, threading.current_thread())
        )


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(kernels_ahead, "_compile_mode", lambda: Mode)
    return Kernel()


def test_a_launch_is_a_launch(kernel):
    launch(kernel, (3,), 1, 2, warps=4)
    assert kernel.launched == [((3,), (1, 2), {"warps": 4})]


def test_ahead_each_kernel_is_compiled_once_in_another_thread_and_none_is_launched(kernel):
    def step():
        for number in range(5):
            launch(kernel, (3,), number, warps=4)
        # The backward pass runs in a thread that has nothing of this one's context.
        backward = threading.Thread(target=launch, args=(kernel, (3,), 1.5), kwargs={"warps": 4})
        backward.start()
        backward.join()

    build_kernels_of(step)
    assert kernel.launched == []
    assert set(kernel.compiled_in) == {(int, ("warps", 4)), (float, ("warps", 4))}
    assert threading.main_thread() not in kernel.compiled_in.values()
    launch(kernel, (3,), 0, warps=4)
    assert len(kernel.launched) == 1


def test_after_a_fault_kernels_are_launched_again(kernel):
    with pytest.raises(ZeroDivisionError):
        build_kernels_of(lambda: 1 // 0)
    launch(kernel, (3,), 1)
    assert len(kernel.launched) == 1


def test_whether_a_kernel_can_be_built_is_tried_by_a_launch_even_ahead(kernel):
    build_kernels_of(lambda: can_build("it", lambda: launch(kernel, (1,), 1)))
    assert len(kernel.launched) == 1


def test_without_triton_nothing_runs(monkeypatch):
    monkeypatch.setattr(kernels_ahead, "_compile_mode", lambda: None)
    build_kernels_of(lambda: pytest.fail("ran"))
