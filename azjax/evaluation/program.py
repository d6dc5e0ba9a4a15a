"""A program of somebody else's that is talked to in lines of text, and that cannot hang us."""

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import threading
import time

from azjax.core.errors import InputError

_LONGEST_LINE = 1 << 16  # bytes
_MOST_WAITING = 256  # lines that are read before anybody asked for them; then the program waits
_MOST_LINES = 10_000  # in one answer
_SECONDS_TO_LEAVE = 1.0


class ProgramError(Exception):
    """What a program did wrong, in a few words: `crash`, `silence`, `flood` and more than that."""


class Program:
    """A running program. Use it as a context, which ends it."""

    def __init__(self, command: str) -> None:
        """Starts the program.

        Args:
          command: as in a shell, but without one: words, quoted where they hold blanks.

        Raises:
          ValueError: it could not be started.
        """
        self.command = command
        try:
            words = shlex.split(command)
            if not words:
                raise InputError("there is no command")
            # A session of its own, so that what it started ends with it.
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
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, line: str) -> None:
        """Writes a line.

        Raises:
          ProgramError: the program has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise ProgramError(self._how_it_ended()) from None

    def answer(self, seconds: float) -> "Answer":
        """The lines that it writes from now on, for so long."""
        return Answer(self, time.monotonic() + seconds, seconds)

    def line(self, deadline: float) -> str | None:
        """The next line, without its end; None if there is none before the deadline.

        Raises:
          ProgramError: the program has ended, or its line is too long.
        """
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if line is None:
            self._lines.put(None)  # for whoever asks again
            raise ProgramError(self._how_it_ended())
        if not line.endswith(b"\n") and len(line) >= _LONGEST_LINE:
            raise ProgramError("flood: a line of more than 64 kB")
        return line.decode(errors="replace").rstrip("\r\n")

    def close(self, farewell: str | None = None) -> None:
        """Ends the program, by force if it does not leave at the farewell."""
        if self._closed:
            return
        self._closed = True
        if farewell is not None:
            with contextlib.suppress(ProgramError):
                self.send(farewell)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if farewell is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_LEAVE)
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
            for line in iter(lambda: self._process.stdout.readline(_LONGEST_LINE), b""):  # type: ignore[union-attr]
                self._lines.put(line)
        self._lines.put(None)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_SECONDS_TO_LEAVE)
        except subprocess.TimeoutExpired:
            return "crash: it closed its output"
        return f"crash: it ended with exit code {code}"


class Answer:
    """The lines of one answer, each read within the time for the whole."""

    def __init__(self, program: Program, deadline: float, seconds: float) -> None:
        self._program, self._deadline, self._seconds, self._read = program, deadline, seconds, 0

    def line(self) -> str:
        """The next line.

        Raises:
          ProgramError: none came in time, too many came, or the program has ended.
        """
        self._read += 1
        if self._read > _MOST_LINES:
            raise ProgramError(f"flood: {_MOST_LINES:,} lines without an answer")
        line = self._program.line(self._deadline)
        if line is None or time.monotonic() > self._deadline:
            raise ProgramError(f"silence: no answer within {self._seconds:g} s")
        return line
