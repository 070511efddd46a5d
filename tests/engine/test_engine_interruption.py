import os
import signal
import threading

import pytest

from dcdc.engine.interruption import Interruption


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


def test_outside_the_main_thread_signals_are_left_alone():
    found = []

    def enter() -> None:
        with Interruption() as interruption:
            found.append(interruption.wanted)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [None]
