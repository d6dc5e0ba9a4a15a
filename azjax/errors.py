"""How commands end after an error: one line and an exit code where users can act, a traceback for a bug."""

import contextlib
import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

from azjax.core.errors import AzjaxError, InputError
from azjax.core.signals import discard_output


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Prints errors and warnings for users as one line on standard error.

    The exit code is 2 for an `InputError`, 1 for any other `AzjaxError` and for an error of the operating system, 130
    after Ctrl-C, and 141 if the reader of the output has ended. Every other exception is a bug: it keeps its traceback,
    and the exit code is 1.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _print_warning
            yield
            sys.stdout.flush()  # here, where a closed pipe has its exit code
    except InputError as error:
        _fail(str(error), 2)
    except AzjaxError as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of the output, such as `head`, has ended. Python would fail again when it empties its buffers.
        discard_output([1])
        _exit(128 + signal.SIGPIPE)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # such as a full disk
            _fail(": ".join(map(str, filter(None, (error.filename, error.strerror)))), 1)
        if _is_one_of_several_processes():
            traceback.print_exc()
            _exit(1)
        raise


def silence_threads() -> None:
    """Keeps tracebacks of other threads off the terminal: Orbax prints or logs each error that it also raises."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if threading.current_thread() is threading.main_thread():
            sys.__excepthook__(kind, error, trace)

    def show_unraisable(error: "sys.UnraisableHookArgs") -> None:
        if error.object is not None:  # otherwise a callback of TensorStore whose event loop is closed
            sys.__unraisablehook__(error)

    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sys.excepthook, sys.unraisablehook = show, show_unraisable


def _fail(message: str, code: int) -> NoReturn:
    try:
        _print_line(message)
    finally:
        _exit(code)


def _exit(code: int) -> NoReturn:
    if _is_one_of_several_processes():
        # A normal exit would wait for the other processes.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _is_one_of_several_processes() -> bool:
    jax = sys.modules.get("jax")  # not imported here, for errors that are found before it is needed
    return jax is not None and bool(jax.distributed.is_initialized())


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _print_line(str(message))


def _print_line(message: str) -> None:
    """Without control characters, which the text of another program may have for a terminal."""
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " ".join(message.split()))
    print(f"azjax: {shown}", file=sys.stderr)
