"""A conversation in lines of text: one that is told, and answers."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TextIO, runtime_checkable

from azjax.core.errors import InputError

LONGEST = 4096  # characters of a line
_MOST_DIGITS = 9


@runtime_checkable
class Engine(Protocol):
    """Who answers lines, one at a time.

    Attributes:
      greeting: what is said before the first line.
      has_ended: whether it was told to leave.
    """

    greeting: str
    has_ended: bool

    def answer(self, line: str) -> str:
        """What is written for a line: whole lines, or nothing."""


def serve(engine: Engine, lines: Iterable[str], output: TextIO) -> None:
    """Answers lines until the engine is told to leave, or their end."""
    _say(engine.greeting, output)
    for line in lines:
        _say(engine.answer(line), output)
        if engine.has_ended:
            return


def read_lines(stream: TextIO) -> Iterator[str]:
    """The lines of a stream; of one that is too long only the beginning, which is longer than `LONGEST` still."""
    while line := stream.readline(LONGEST + 2):
        rest = line
        while rest and not rest.endswith("\n"):
            rest = stream.readline(LONGEST)
        yield line.rstrip("\n")


def whole_number(word: str) -> int:
    """The number 0..999,999,999 that a word is.

    Raises:
      ValueError: it is none.
    """
    if not (word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS):
        raise InputError(f"syntax error: {word[:40]!r} is no whole number")
    return int(word)


def _say(text: str, output: TextIO) -> None:
    if text:
        output.write(text)
        output.flush()
