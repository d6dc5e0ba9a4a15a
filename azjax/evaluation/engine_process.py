"""An external program that exchanges lines of text with us, with limits on the time and the size of its answers."""

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import threading
import time

from azjax.core.errors import InputError

_MAX_LINE = 1 << 16  # bytes
_MAX_QUEUED = 256  # lines read ahead; then the program blocks
_MAX_LINES = 10_000  # of one answer
_SECONDS_TO_EXIT = 1.0


class EngineError(Exception):
    """A fault of a program in a game, in a few words: `crash`, `silence`, `flood`, `refusal`, and details."""


class EngineProcess:
    """A running program; `close` ends it."""

    def __init__(self, command: str) -> None:
        """Starts the program.

        Args:
          command: words as in a shell, quoted where they contain spaces; no shell runs.

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
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise InputError(f"the program {command!r} could not be started: {reason}") from None
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MAX_QUEUED)
        self._closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, line: str) -> None:
        """Writes a line.

        Raises:
          EngineError: the program has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise EngineError(self._how_it_ended()) from None

    def answer(self, seconds: float) -> "Answer":
        """The lines that it writes within so many seconds from now."""
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
        while self._reader.is_alive():
            with contextlib.suppress(queue.Empty):
                self._lines.get(timeout=0.01)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in iter(lambda: self._process.stdout.readline(_MAX_LINE), b""):  # type: ignore[union-attr]
                self._lines.put(line)
        self._lines.put(None)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_SECONDS_TO_EXIT)
        except subprocess.TimeoutExpired:
            return "crash: it closed its output"
        return f"crash: it ended with exit code {code}"


class Answer:
    """The lines of one answer, all of them within one deadline."""

    def __init__(self, program: EngineProcess, deadline: float, seconds: float) -> None:
        self._program, self._deadline, self._seconds, self._read = program, deadline, seconds, 0

    def line(self) -> str:
        """The next line.

        Raises:
          EngineError: none in time, too many lines, or the program has ended.
        """
        self._read += 1
        if self._read > _MAX_LINES:
            raise EngineError(f"flood: {_MAX_LINES:,} lines without an answer")
        line = self._program.line(self._deadline)
        if line is None or time.monotonic() > self._deadline:
            raise EngineError(f"silence: no answer within {self._seconds:g} s")
        return line
