"""The signals by which long work is stopped: Ctrl-C, SIGTERM, and SIGHUP when the terminal is closed."""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that stop work here; SIGHUP is one of them unless the process ignores it, as below `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if ignored else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def output_on_terminals() -> list[int]:
    """Which of standard output and standard error are terminals."""
    return [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]


def discard_output(descriptors: list[int]) -> None:
    """Later output there is discarded: writing to a terminal that was closed would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextlib.contextmanager
def stop_requests() -> Iterator[list[signal.Signals]]:
    """Collects the signals that stop work; after the first of them the next one acts as usual."""
    stops: list[signal.Signals] = []
    terminals = output_on_terminals()

    def request(number: int, frame: FrameType | None) -> None:
        del frame
        stops.append(signal.Signals(number))
        if number == signal.SIGHUP:
            discard_output(terminals)
        for each, handler in before.items():
            signal.signal(each, handler)

    before: dict[int, Any] = {}
    try:
        for number in stop_signals():
            # Only the main thread may set handlers; in other threads the caller handles signals.
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, request)
        yield stops
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
