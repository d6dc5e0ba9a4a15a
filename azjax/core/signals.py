"""The signals by which long work is stopped: Ctrl-C, SIGTERM, and SIGHUP when the terminal is closed."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, NoReturn


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
def exits_by_signals() -> Iterator[None]:
    """Work that SIGTERM or SIGHUP stops closes what it holds, as after Ctrl-C; the exit code tells the signal."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del frame
        sys.exit(128 + number)

    with handled({number: end for number in stop_signals() if number != signal.SIGINT}):
        yield


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

    with handled(dict.fromkeys(stop_signals(), request)) as before:
        yield stops


@contextlib.contextmanager
def handled(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], None]]) -> Iterator[dict[int, Any]]:
    """Signals have these handlers; gives the handlers that they had before, and have again after."""
    before: dict[int, Any] = {}
    try:
        for number, handler in handlers.items():
            # Only the main thread may set handlers; in other threads the caller handles signals.
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, handler)
        yield before
    finally:
        for each, earlier in before.items():
            signal.signal(each, earlier)
