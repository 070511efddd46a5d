"""Signals as a terminal's foreground has them, whatever started the tests.

Shells start background jobs with SIGINT ignored, nohup ignores SIGHUP, and both pass it on to all
that they start: a test that presses Ctrl-C, or ends a process, would wait in vain.
"""

import signal
import threading

import pytest

_USUAL = {
    getattr(signal, name): usual
    for name, usual in (
        ("SIGINT", signal.default_int_handler),
        ("SIGTERM", signal.SIG_DFL),
        ("SIGHUP", signal.SIG_DFL),
    )
    if hasattr(signal, name)  # Windows has not all
}


@pytest.fixture(autouse=True)
def own_signals():
    """For the test and the processes that it starts; afterwards they are as they were."""
    is_main = threading.current_thread() is threading.main_thread()  # elsewhere they are not ours
    if not is_main or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, _USUAL)
    before = {number: signal.signal(number, usual) for number, usual in _USUAL.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
