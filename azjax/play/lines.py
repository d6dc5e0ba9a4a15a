"""Engines that converse in lines of text."""

from collections.abc import Iterable, Iterator
from io import TextIOBase
from typing import Protocol, TextIO, TypeAlias, runtime_checkable

from azjax.core.errors import InputError

MAX_LINE = 4096  # characters
Stream: TypeAlias = TextIO | TextIOBase
_MAX_DIGITS = 9


@runtime_checkable
class Engine(Protocol):
    """A program that answers one line at a time.

    Attributes:
      greeting: written before the first answer.
      has_ended: whether a line asked the engine to quit.
    """

    greeting: str
    has_ended: bool

    def answer(self, line: str) -> str:
        """The response to a line: whole lines, or nothing."""


def serve(engine: Engine, lines: Iterable[str], output: Stream) -> None:
    """Answers lines until the engine has ended or no line is left."""
    _write(engine.greeting, output)
    for line in lines:
        _write(engine.answer(line), output)
        if engine.has_ended:
            return


def read_lines(stream: Stream, max_line: int = MAX_LINE) -> Iterator[str]:
    """The lines of a stream. A line above `max_line` is cut, and stays too long for the engine to accept."""
    while line := stream.readline(max_line + 2):
        rest = line
        while rest and not rest.endswith("\n"):
            rest = stream.readline(max_line)
        yield line.rstrip("\n")


def whole_number(word: str) -> int:
    """Parses a number 0..999,999,999.

    Raises:
      InputError: the word is no such number.
    """
    if not (word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS):
        raise InputError(f"syntax error: {word[:40]!r} is not a whole number of 0 or more")
    return int(word)


def _write(text: str, output: Stream) -> None:
    if text:
        output.write(text)
        output.flush()
