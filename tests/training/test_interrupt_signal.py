"""Signals that request a stop."""

import os
import signal

import pytest

from regard.training.interrupt_signal import InterruptSignal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_recorded_and_the_second_interrupts(number: signal.Signals) -> None:
    previous = signal.getsignal(number)
    with InterruptSignal() as stop:
        assert not stop.received
        os.kill(os.getpid(), number)
        assert (stop.received, stop.number) == (True, number)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == previous
