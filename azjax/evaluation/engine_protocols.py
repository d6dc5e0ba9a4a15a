"""The three protocols of external programs. Moves are in the notation of the game.

- `gtp`: the Go Text Protocol (Farnebäck 2002, version 2): `clear_board`, `play b MOVE`, `genmove w`, `quit`. Black is
  player 0.
- `opentafl`: the OpenTafl Engine Protocol, for Brandub.
- `line`: the protocol of docs/line_protocol.md, for every game.
"""

from typing import Protocol, runtime_checkable

from azjax.core.errors import InputError
from azjax.evaluation.engine_process import Answer, EngineError, EngineProcess
from azjax.evaluation.host_games import text_game
from azjax.games.game import AnyGame, State
from azjax.games.registry import options_of

SIDES = ("attackers", "defenders")
# Our default rules as a rules record in OpenTafl's notation.
BRANDUB_RULES = "dim:7 surf:n atkf:y ks:c cens: cenhe:tcnkmTCNKM start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"


@runtime_checkable
class EngineProtocol(Protocol):
    """The commands of a protocol. All methods may raise `EngineError`."""

    farewell: str

    def greet(self, engine: EngineProcess, game: AnyGame, seconds: float) -> None:
        """Opens the conversation, once per process.

        Raises:
          InputError: the protocol does not cover the game.
        """

    def new_game(self, engine: EngineProcess, game: AnyGame, start: str | None, seat: int, seconds: float) -> None:
        """Begins a game, in which the program plays `seat`, from a position (None for the game's own start).

        Raises:
          InputError: the protocol cannot describe the start.
        """

    def play(self, engine: EngineProcess, game: AnyGame, move: str, mover: int, state: State, seconds: float) -> None:
        """Sends the opponent's move, and the state after it."""

    def choose(self, engine: EngineProcess, seat: int, seconds: float) -> str:
        """The program's move."""


class Gtp:
    """The Go Text Protocol."""

    farewell = "quit"

    def greet(self, engine: EngineProcess, game: AnyGame, seconds: float) -> None:
        del game
        self._command(engine, "protocol_version", seconds)

    def new_game(self, engine: EngineProcess, game: AnyGame, start: str | None, seat: int, seconds: float) -> None:
        del game, seat
        if start is not None:
            raise InputError(f"gtp has no command to begin at the position {start!r}")
        self._command(engine, "clear_board", seconds)

    def play(self, engine: EngineProcess, game: AnyGame, move: str, mover: int, state: State, seconds: float) -> None:
        del game, state
        self._command(engine, f"play {'bw'[mover]} {move}", seconds)

    def choose(self, engine: EngineProcess, seat: int, seconds: float) -> str:
        return self._command(engine, f"genmove {'bw'[seat]}", seconds)

    @staticmethod
    def _command(engine: EngineProcess, command: str, seconds: float) -> str:
        engine.send(command)
        answer = engine.answer(seconds)
        line = answer.line()
        while not line.startswith(("=", "?")):
            line = answer.line()
        # An answer ends with an empty line.
        rest = answer.line()
        while rest.strip():
            rest = answer.line()
        text = line[1:].lstrip("0123456789").strip()
        if line.startswith("?"):
            raise EngineError(f"refusal of {command!r}: {text}")
        return text


class OpenTafl:
    """The OpenTafl Engine Protocol, version of 2016; commands are not acknowledged."""

    farewell = "goodbye"

    def greet(self, engine: EngineProcess, game: AnyGame, seconds: float) -> None:
        if game.name != "brandub":
            raise InputError(f"opentafl is for brandub, not for {game.name}")
        answer = engine.answer(seconds)
        while answer.line().strip() != "hello":
            pass

    def new_game(self, engine: EngineProcess, game: AnyGame, start: str | None, seat: int, seconds: float) -> None:
        del game, seconds
        engine.send(f"rules {BRANDUB_RULES}")
        if start is not None:
            engine.send(f"position {position_record(start)}")
        engine.send(f"side {SIDES[seat]}")
        engine.send("start")

    def play(self, engine: EngineProcess, game: AnyGame, move: str, mover: int, state: State, seconds: float) -> None:
        del mover, seconds
        engine.send(f"opponent-move {move} {position_record(text_game(game).to_text(state))}")

    def choose(self, engine: EngineProcess, seat: int, seconds: float) -> str:
        engine.send(f"play {SIDES[seat]}")
        return _word_after(engine.answer(seconds), "move")


class Line:
    """The protocol of docs/line_protocol.md: one line answers another."""

    farewell = "quit"

    def greet(self, engine: EngineProcess, game: AnyGame, seconds: float) -> None:
        self._send(engine, "azjax 1", seconds)
        options = "".join(f" {name}={value}" for name, value in options_of(game).items())
        self._send(engine, f"game {game.name}{options}", seconds)

    def new_game(self, engine: EngineProcess, game: AnyGame, start: str | None, seat: int, seconds: float) -> None:
        del game
        self._send(engine, f"new {seat}" if start is None else f"new {seat} {start}", seconds)

    def play(self, engine: EngineProcess, game: AnyGame, move: str, mover: int, state: State, seconds: float) -> None:
        del game, mover, state
        self._send(engine, f"play {move}", seconds)

    def choose(self, engine: EngineProcess, seat: int, seconds: float) -> str:
        del seat
        engine.send("go")
        return _word_after(engine.answer(seconds), "move")

    @staticmethod
    def _send(engine: EngineProcess, line: str, seconds: float) -> None:
        engine.send(line)
        answer = engine.answer(seconds)
        while (reply := answer.line().strip()) != "ok":
            if reply.startswith("error"):
                raise EngineError(f"refusal of {line!r}: {reply.removeprefix('error').strip()}")


ENGINE_PROTOCOLS: dict[str, EngineProtocol] = {"gtp": Gtp(), "opentafl": OpenTafl(), "line": Line()}


def _word_after(answer: Answer, head: str) -> str:
    """The move in the first line `HEAD MOVE`; skips other lines, and raises on a line `error ...`."""
    while True:
        first, _, rest = answer.line().strip().partition(" ")
        if first == head:
            return rest.strip()
        if first == "error":
            raise EngineError(f"refusal to move: {rest.strip()}")


def position_record(text: str) -> str:
    """A position of Brandub in OpenTafl's notation: from the first rank up, a slash at either end, no side to move."""
    rows = text.partition(" ")[0].split("/")
    return f"/{'/'.join(reversed(rows))}/"
