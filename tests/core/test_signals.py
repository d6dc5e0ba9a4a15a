"""Signals that stop long work."""

import signal

import pytest

from azjax.core.signals import exits_by_signals, stop_requests


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


def test_an_end_from_outside_closes_what_is_open_and_is_told_by_the_exit_code():
    closed, before = [], signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stop:
        _end_by_a_signal(closed)
    assert (stop.value.code, closed) == (143, [True])
    assert signal.getsignal(signal.SIGTERM) == before


def _end_by_a_signal(closed):
    with exits_by_signals():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            closed.append(True)
