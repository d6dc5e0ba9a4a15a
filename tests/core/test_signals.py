"""Signals that stop long work."""

import signal

from azjax.core.signals import stop_requests


def test_a_second_signal_of_another_kind_acts_as_usual():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with stop_requests() as stops:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (stops, heard) == ([signal.SIGINT], [signal.SIGTERM])
