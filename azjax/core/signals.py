"""The signals by which long work is stopped: Ctrl-C, SIGTERM, and SIGHUP when the terminal is closed."""

import os
import signal


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
