"""Three languages in which programs are asked for moves. Moves are in the notation of the game throughout.

- `gtp`: the Go Text Protocol (Farnebäck 2002, version 2): `clear_board`, `play b MOVE`, `genmove w`, `quit`. Black is
  player 0.
- `opentafl`: the OpenTafl Engine Protocol, for Brandub.
- `line`: the protocol of docs/line_protocol.md, for every game.
"""

from typing import Any, Protocol, runtime_checkable

from azjax.core.errors import InputError
from azjax.evaluation.program import Answer, Program, ProgramError
from azjax.games.game import Game
from azjax.games.registry import options_of

SIDES = ("attackers", "defenders")
# What a rules record of OpenTafl's notation says of our default rules.
BRANDUB_RULES = "dim:7 surf:n atkf:y ks:c cens: cenhe:tcnkmTCNKM start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"


@runtime_checkable
class Language(Protocol):
    """How a program is talked to. All methods may raise `ProgramError`."""

    farewell: str

    def greet(self, program: Program, game: Game, seconds: float) -> None:
        """Begins, once for each program.

        Raises:
          ValueError: the language cannot speak of this game.
        """

    def new_game(self, program: Program, game: Game, start: str | None, seat: int, seconds: float) -> None:
        """Begins a game from a position, None for the game's own, in which the program has a seat.

        Raises:
          ValueError: the language cannot speak of a start.
        """

    def tell(self, program: Program, game: Game, move: str, mover: int, state: Any, seconds: float) -> None:
        """Tells a move that the other side made, and the state after it."""

    def ask(self, program: Program, seat: int, seconds: float) -> str:
        """The program's move."""


class Gtp:
    """The Go Text Protocol."""

    farewell = "quit"

    def greet(self, program: Program, game: Game, seconds: float) -> None:
        del game
        self._command(program, "protocol_version", seconds)

    def new_game(self, program: Program, game: Game, start: str | None, seat: int, seconds: float) -> None:
        del game, seat
        if start is not None:
            raise InputError(f"gtp knows no way to begin at the position {start!r}")
        self._command(program, "clear_board", seconds)

    def tell(self, program: Program, game: Game, move: str, mover: int, state: Any, seconds: float) -> None:
        del game, state
        self._command(program, f"play {'bw'[mover]} {move}", seconds)

    def ask(self, program: Program, seat: int, seconds: float) -> str:
        return self._command(program, f"genmove {'bw'[seat]}", seconds)

    @staticmethod
    def _command(program: Program, command: str, seconds: float) -> str:
        program.send(command)
        answer = program.answer(seconds)
        line = answer.line()
        while not line.startswith(("=", "?")):
            line = answer.line()
        # An answer ends with an empty line.
        rest = answer.line()
        while rest.strip():
            rest = answer.line()
        text = line[1:].lstrip("0123456789").strip()
        if line.startswith("?"):
            raise ProgramError(f"refusal of {command!r}: {text}")
        return text


class OpenTafl:
    """The OpenTafl Engine Protocol, version of 2016; commands are not acknowledged."""

    farewell = "goodbye"

    def greet(self, program: Program, game: Game, seconds: float) -> None:
        if game.name != "brandub":
            raise InputError(f"opentafl is for brandub, not for {game.name}")
        answer = program.answer(seconds)
        while answer.line().strip() != "hello":
            pass

    def new_game(self, program: Program, game: Game, start: str | None, seat: int, seconds: float) -> None:
        del game, seconds
        program.send(f"rules {BRANDUB_RULES}")
        if start is not None:
            program.send(f"position {position_record(start)}")
        program.send(f"side {SIDES[seat]}")
        program.send("start")

    def tell(self, program: Program, game: Game, move: str, mover: int, state: Any, seconds: float) -> None:
        del mover, seconds
        program.send(f"opponent-move {move} {position_record(game.to_text(state))}")

    def ask(self, program: Program, seat: int, seconds: float) -> str:
        program.send(f"play {SIDES[seat]}")
        return _word_after(program.answer(seconds), "move")


class Line:
    """Our own protocol: a line for a line."""

    farewell = "quit"

    def greet(self, program: Program, game: Game, seconds: float) -> None:
        self._say(program, "azjax 1", seconds)
        options = "".join(f" {name}={value}" for name, value in options_of(game).items())
        self._say(program, f"game {game.name}{options}", seconds)

    def new_game(self, program: Program, game: Game, start: str | None, seat: int, seconds: float) -> None:
        del game
        self._say(program, f"new {seat}" if start is None else f"new {seat} {start}", seconds)

    def tell(self, program: Program, game: Game, move: str, mover: int, state: Any, seconds: float) -> None:
        del game, mover, state
        self._say(program, f"play {move}", seconds)

    def ask(self, program: Program, seat: int, seconds: float) -> str:
        del seat
        program.send("go")
        return _word_after(program.answer(seconds), "move")

    @staticmethod
    def _say(program: Program, line: str, seconds: float) -> None:
        program.send(line)
        answer = program.answer(seconds)
        while (said := answer.line().strip()) != "ok":
            if said.startswith("error"):
                raise ProgramError(f"refusal of {line!r}: {said.removeprefix('error').strip()}")


LANGUAGES: dict[str, Language] = {"gtp": Gtp(), "opentafl": OpenTafl(), "line": Line()}


def _word_after(answer: Answer, head: str) -> str:
    """The move of the first line `HEAD MOVE`; errors that the program tells end it, other lines are passed over."""
    while True:
        first, _, rest = answer.line().strip().partition(" ")
        if first == head:
            return rest.strip()
        if first == "error":
            raise ProgramError(f"refusal to move: {rest.strip()}")


def position_record(text: str) -> str:
    """A position of Brandub in OpenTafl's notation: from the first rank up, a slash at either end, no side to move."""
    rows = text.partition(" ")[0].split("/")
    return f"/{'/'.join(reversed(rows))}/"
