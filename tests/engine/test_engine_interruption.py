import os
import signal
import threading
import time

import pytest

from dcdc.engine.interruption import Interruption
from dcdc.errors import PeerLostError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish(number):
    before = signal.getsignal(number)
    with Interruption() as interruption:
        assert interruption.wanted is None
        os.kill(os.getpid(), number)
        assert interruption.wanted == number.name
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_acts_as_always():
    with Interruption():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_the_parent_had_ignored_is_a_wish_and_then_ignored_again(number):
    """In the background too, what stops a run leaves it to be gone on with."""
    signal.signal(number, signal.SIG_IGN)
    with Interruption() as interruption:
        os.kill(os.getpid(), number)
        assert interruption.wanted == number.name
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is signal.SIG_IGN


def test_outside_the_main_thread_signals_are_left_alone():
    found = []

    def enter() -> None:
        with Interruption() as interruption:
            found.append(interruption.wanted)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [None]


def test_where_repeats_are_ignored_they_are_the_same_request():
    with Interruption(ignore_repeats=True) as interruption:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        assert interruption.wanted == "SIGINT"
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


def test_a_lost_process_may_still_say_so_when_torchrun_ends_it():
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(PeerLostError), Interruption(ignore_repeats=True) as interruption:
            raise PeerLostError("gone")
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.wanted == "SIGTERM"
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
