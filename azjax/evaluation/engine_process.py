"""An external program that exchanges lines of text with us, with limits on the time and the size of its answers."""

import contextlib
import os
import queue
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import IO

from azjax.core.errors import InputError

_MAX_LINE = 1 << 16  # bytes
_MAX_QUEUED = 256  # lines read ahead; then the program blocks
_MAX_LINES = 10_000  # of one answer
_SHOWN = 200  # characters of a line, in an error
_SECONDS_TO_EXIT = 1.0


class EngineError(Exception):
    """A fault of a program in a game, in a few words: `crash`, `silence`, `flood`, `refusal`, and details."""


class EngineProcess:
    """A running program; `close` ends it."""

    def __init__(self, command: str, seconds: float) -> None:
        """Starts the program.

        Args:
          command: words as in a shell, quoted where they contain spaces; no shell runs.
          seconds: within which it has to read a line.

        Raises:
          InputError: it could not be started.
        """
        try:
            words = shlex.split(command)
            if not words:
                raise InputError("there is no command")
            # A session of its own, so that its child processes end with it.
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise InputError(f"the program {command!r} could not be started: {reason}") from None
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._seconds = seconds
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MAX_QUEUED)
        self._closed = False
        self._woken, self._wake = os.pipe()  # closing the second wakes the reader
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._errors = b""  # the last of them
        self._error_reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        self._error_reader.start()

    def send(self, line: str) -> None:
        """Writes a line.

        Raises:
          EngineError: the program has ended, or does not read.
        """
        assert self._process.stdin is not None
        rest, pipe, deadline = f"{line}\n".encode(), self._process.stdin.fileno(), time.monotonic() + self._seconds
        while rest:
            if not _is_ready(pipe, selectors.EVENT_WRITE, deadline - time.monotonic()):
                raise EngineError(f"silence: it did not read for {self._seconds:g} s")
            try:
                rest = rest[os.write(pipe, rest) :]
            except OSError:
                raise EngineError(self._how_it_ended()) from None

    def answer(self, seconds: float) -> "Answer":
        """The lines that it writes within this many seconds from now."""
        return Answer(self, time.monotonic() + seconds, seconds)

    def line(self, deadline: float) -> str | None:
        """The next line, without its newline; None if there is none before the deadline.

        Raises:
          EngineError: the program has ended, or its line is too long.
        """
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if line is None:
            self._lines.put(None)  # for the next call
            raise EngineError(self._how_it_ended())
        if not line.endswith(b"\n") and len(line) >= _MAX_LINE:
            raise EngineError("flood: a line of more than 64 kB")
        return line.decode(errors="replace").rstrip("\r\n")

    def close(self, farewell: str | None = None) -> None:
        """Ends the program; kills it if it does not exit after the farewell."""
        if self._closed:
            return
        self._closed = True
        self._seconds = min(self._seconds, _SECONDS_TO_EXIT)
        if farewell is not None:
            with contextlib.suppress(EngineError):
                self.send(farewell)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if farewell is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_EXIT)
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # Children of the program may hold its output open: the reader does not wait for its end.
        os.close(self._wake)
        while self._reader.is_alive():
            with contextlib.suppress(queue.Empty):
                self._lines.get(timeout=0.01)
        self._error_reader.join()
        self._lines.put(None)  # for a thread that still waits for a line; the queue is empty
        os.close(self._woken)
        for output in (self._process.stdout, self._process.stderr):
            assert output is not None
            output.close()

    def _chunks(self, output: IO[bytes] | None) -> Iterator[bytes]:
        """What the program writes there, until it ends or `close` does not wait for more."""
        assert output is not None
        pipe = output.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while all(key.fd == pipe for key, _ in selector.select()) and (read := os.read(pipe, _MAX_LINE)):
                yield read

    def _read_errors(self) -> None:
        for read in self._chunks(self._process.stderr):
            self._errors = (self._errors + read)[-_MAX_LINE:]

    def _read(self) -> None:
        rest = b""
        for read in self._chunks(self._process.stdout):
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                self._lines.put(line + b"\n")
            if len(rest) >= _MAX_LINE:
                self._lines.put(rest)
                rest = b""
        if rest:
            self._lines.put(rest)
        self._lines.put(None)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_SECONDS_TO_EXIT)
        except subprocess.TimeoutExpired:
            return "crash: it closed its output"
        self._error_reader.join(_SECONDS_TO_EXIT)
        last = self._errors.decode(errors="replace").strip().rpartition("\n")[2].strip()
        return f"crash: it ended with exit code {code}" + f"; its last error: {last[:_SHOWN]}" * bool(last)


def _is_ready(pipe: int, event: int, seconds: float) -> bool:
    """Whether a pipe can be read or written within this many seconds."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, event)
        return bool(selector.select(max(0.0, seconds)))


class Answer:
    """The lines of one answer, all of them within one deadline."""

    def __init__(self, program: EngineProcess, deadline: float, seconds: float) -> None:
        self._program, self._deadline, self._seconds, self._read = program, deadline, seconds, 0
        self._last = ""

    def line(self) -> str:
        """The next line.

        Raises:
          EngineError: none in time, too many lines, or the program has ended.
        """
        self._read += 1
        if self._read > _MAX_LINES:
            raise EngineError(f"flood: {_MAX_LINES:,} lines without an answer")
        try:
            line = self._program.line(self._deadline)
        except EngineError as error:
            # What a program writes before it ends is often the reason.
            raise EngineError(f"{error}; its last line: {self._last[:_SHOWN]}" if self._last else str(error)) from None
        if line is None or time.monotonic() > self._deadline:
            raise EngineError(f"silence: no answer within {self._seconds:g} s")
        self._last = line.strip() or self._last
        return line
