"""The three protocols of external programs. Moves are in the notation of the game.

- `gtp`: the Go Text Protocol (Farnebäck 2002, version 2): `clear_board`, `play b MOVE`, `genmove w`, `quit`. Black is
  player 0.
- `opentafl`: the OpenTafl Engine Protocol, for Brandub.
- `line`: the protocol of docs/line_protocol.md, for every game.
"""

import abc

from azjax.core.errors import InputError
from azjax.evaluation.engine_process import EngineError, EngineProcess
from azjax.evaluation.host_games import text_game
from azjax.games.game import AnyGame, State
from azjax.games.registry import options_of

SIDES = ("attackers", "defenders")
# Our default rules as a rules record in OpenTafl's notation.
BRANDUB_RULES = "dim:7 surf:n atkf:y ks:c cens: cenhe:tcnkmTCNKM start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"


class EngineProtocol(abc.ABC):
    """A conversation with one process about one game. All methods may raise `EngineError`."""

    farewell = "quit"

    def __init__(self, engine: EngineProcess, game: AnyGame, seconds: float) -> None:
        """`seconds`: for each answer."""
        self.engine, self.game, self.seconds = engine, game, seconds

    @abc.abstractmethod
    def greet(self, seconds: float) -> None:
        """Opens the conversation.

        Raises:
          InputError: the protocol does not cover the game.
        """

    @abc.abstractmethod
    def new_game(self, start: str | None, seat: int) -> None:
        """Begins a game, in which the program plays `seat`, from a position (None for the game's own start).

        Raises:
          InputError: the protocol cannot describe the start.
        """

    @abc.abstractmethod
    def play(self, move: str, mover: int, state: State) -> None:
        """Sends the opponent's move, and the state after it."""

    @abc.abstractmethod
    def choose(self, seat: int) -> str:
        """The program's move."""

    def _move_after(self, head: str) -> str:
        """The move in the first line `HEAD MOVE`; skips other lines, and raises on a line `error ...`."""
        answer = self.engine.answer(self.seconds)
        while True:
            first, _, rest = answer.line().strip().partition(" ")
            if first == head:
                return rest.strip()
            if first == "error":
                raise EngineError(f"refusal to move: {rest.strip()}")


class Gtp(EngineProtocol):
    """The Go Text Protocol."""

    def greet(self, seconds: float) -> None:
        self._command("protocol_version", seconds)

    def new_game(self, start: str | None, seat: int) -> None:
        if start is not None:
            raise InputError(f"gtp has no command to begin at the position {start!r}")
        self._command("clear_board", self.seconds)

    def play(self, move: str, mover: int, state: State) -> None:
        self._command(f"play {'bw'[mover]} {move}", self.seconds)

    def choose(self, seat: int) -> str:
        return self._command(f"genmove {'bw'[seat]}", self.seconds)

    def _command(self, command: str, seconds: float) -> str:
        self.engine.send(command)
        answer = self.engine.answer(seconds)
        line = answer.line()
        while not line.startswith(("=", "?")):
            line = answer.line()
        while answer.line().strip():  # an answer ends with an empty line
            pass
        text = line[1:].lstrip("0123456789").strip()
        if line.startswith("?"):
            raise EngineError(f"refusal of {command!r}: {text}")
        return text


class OpenTafl(EngineProtocol):
    """The OpenTafl Engine Protocol, version of 2016; commands are not acknowledged."""

    farewell = "goodbye"

    def greet(self, seconds: float) -> None:
        if self.game.name != "brandub":
            raise InputError(f"opentafl is for brandub, not for {self.game.name}")
        answer = self.engine.answer(seconds)
        while answer.line().strip() != "hello":
            pass

    def new_game(self, start: str | None, seat: int) -> None:
        self.engine.send(f"rules {BRANDUB_RULES}")
        if start is not None:
            self.engine.send(f"position {position_record(start)}")
            # A record does not say whose turn it is. `side` is the side to move, not that of the program: it would play
            # the first moves of the defenders on a board of its own.
            self.engine.send(f"side {SIDES['ad'.index(start.rpartition(' ')[2])]}")
        self.engine.send("start")

    def play(self, move: str, mover: int, state: State) -> None:
        self.engine.send(f"opponent-move {move} {position_record(text_game(self.game).to_text(state))}")

    def choose(self, seat: int) -> str:
        self.engine.send(f"play {SIDES[seat]}")
        return self._move_after("move")


class Line(EngineProtocol):
    """The protocol of docs/line_protocol.md: one line answers another."""

    def greet(self, seconds: float) -> None:
        options = "".join(f" {name}={value}" for name, value in options_of(self.game).items())
        for line in ("azjax 1", f"game {self.game.name}{options}"):
            self._command(line, seconds)

    def new_game(self, start: str | None, seat: int) -> None:
        self._command(f"new {seat}" if start is None else f"new {seat} {start}", self.seconds)

    def play(self, move: str, mover: int, state: State) -> None:
        self._command(f"play {move}", self.seconds)

    def choose(self, seat: int) -> str:
        self.engine.send("go")
        return self._move_after("move")

    def _command(self, line: str, seconds: float) -> None:
        self.engine.send(line)
        answer = self.engine.answer(seconds)
        while (reply := answer.line().strip()) != "ok":
            if reply.startswith("error"):
                raise EngineError(f"refusal of {line!r}: {reply.removeprefix('error').strip()}")


ENGINE_PROTOCOLS: dict[str, type[EngineProtocol]] = {"gtp": Gtp, "opentafl": OpenTafl, "line": Line}


def position_record(text: str) -> str:
    """A position of Brandub in OpenTafl's notation: from the first rank up, a slash at either end, no side to move."""
    rows = text.partition(" ")[0].split("/")
    return f"/{'/'.join(reversed(rows))}/"
