"""Errors of tyro in one line."""

import dataclasses
import io
import sys
from typing import Literal

import pytest

from azjax.commands.parsing import parse_with_tyro
from azjax.core.errors import InputError


@dataclasses.dataclass(frozen=True)
class Options:
    """Some options.

    Attributes:
      games: the number of games, which has a description so long that it takes more than one line of a terminal.
      level: of the agent.
      share: of its moves.
    """

    games: int = 2
    level: Literal["hard", "easy"] = "easy"
    share: float | None = None

    def __post_init__(self):
        if self.games < 2:
            raise InputError(f"games must be at least 2, got {self.games}")


@pytest.fixture(params=["utf-8", "ascii"])
def terminal(request, monkeypatch):
    """Standard output is a terminal that shows colors."""

    class Terminal(io.StringIO):
        encoding = request.param

        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("columns", ["40", "80", "500"])
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--gaems", "4"],
            "unrecognized options: --gaems, 4 (did you mean --games?); `azjax some",
        ),
        (["4"], "unrecognized options: 4; `azjax some command --help` tells more"),
        (["--games", "many"], "--games must be an integer, got 'many'; `azjax some"),
        (["--share", "half"], "--share must be a number or None, got 'half'; `azjax some"),
        (["--games"], "missing value for argument '--games'; `azjax some command --help` tells more"),
        (["--level", "hart"], "invalid choice 'hart' for argument '--level'; available: easy, hard; `azjax some"),
        (["--games", "1"], "games must be at least 2, got 1"),
        (["--games", "4", "--games=6"], "--games is given twice"),
        (["--level", "hard", "--level", "hard"], "--level is given twice"),
        (["--level", ""], "--level must not be empty"),
        (["--share="], "--share must not be empty"),
    ],
)
def test_what_is_refused_is_told_in_one_line(terminal, monkeypatch, arguments, line, columns):
    del terminal
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(InputError) as refused:
        parse_with_tyro(Options, arguments, "azjax some command")
    assert str(refused.value).startswith(line)


def test_what_the_options_print_is_shown(capsys):
    @dataclasses.dataclass(frozen=True)
    class Warns(Options):
        def __post_init__(self):
            print("a warning", file=sys.stderr)

    parse_with_tyro(Warns, [], "azjax some command")
    assert capsys.readouterr().err == "a warning\n"


def test_options_are_parsed_and_help_is_shown(capsys):
    assert parse_with_tyro(Options, ["--games", "4"], "azjax some command") == Options(games=4)
    with pytest.raises(SystemExit, match="0"):
        parse_with_tyro(Options, ["--help"], "azjax some command")
    shown = capsys.readouterr()
    assert "usage: azjax some command" in shown.out
    assert not shown.err
