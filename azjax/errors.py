"""How commands end when something goes wrong: with one line that tells what, an exit code, and no traceback."""

import contextlib
import logging
import os
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

import jax


@contextlib.contextmanager
def told_in_one_line() -> Iterator[None]:
    """Tells errors and warnings to standard error; errors end the process with 2 for bad input, 1 for the rest."""
    try:
        with warnings.catch_warnings():
            # Those meant for users are told as errors are, without the place in the code.
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _tell  # type: ignore[assignment]
            yield
    except ValueError as error:
        _fail(str(error), 2)
    except (RuntimeError, OSError) as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:  # a bug, or memory that ran out
        number, path = tempfile.mkstemp(prefix="azjax-", suffix=".txt", text=True)
        with open(number, "w") as file:
            file.write(traceback.format_exc())
        _fail(f"{type(error).__name__}: {error} ({path} tells where)", 1)


def silence_threads() -> None:
    """Those of Orbax show or log the tracebacks of errors that it raises too, and of what follows from them."""

    def show(kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:
        if threading.current_thread() is threading.main_thread():
            sys.__excepthook__(kind, error, place)

    def show_unraisable(error: Any) -> None:
        if error.object is not None:  # else it is of a callback of TensorStore, whose event loop is gone
            sys.__unraisablehook__(error)

    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sys.excepthook, sys.unraisablehook = show, show_unraisable


def _fail(message: str, code: int) -> NoReturn:
    try:
        _tell(message)
    finally:
        if jax.distributed.is_initialized():
            # At exit JAX would wait for the other processes.
            os._exit(code)
    sys.exit(code)


def _tell(message: Warning | str, *_: Any) -> None:
    print(f"azjax: {' '.join(str(message).split())}", file=sys.stderr)
