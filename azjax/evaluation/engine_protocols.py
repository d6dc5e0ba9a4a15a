"""The protocols of external programs. Moves are in the notation of the game.

- `gtp`: the Go Text Protocol (Farnebäck 2002, version 2): `clear_board`, `play b MOVE`, `genmove w`, `quit`. Black is
  player 0.
- `opentafl`: the OpenTafl Engine Protocol, for tafl.
- `santorini`: that of santorini-ai (https://github.com/JPricey/santorini-ai, uci/README.md), for Santorini on 5x5 with
  two workers. The program is sent a position, writes ever better next positions, and is told to stop after `seconds`.
- `line`: the protocol of docs/line_protocol.md, for every game.
"""

import abc
import time
from typing import Any

import jax

from azjax.core.errors import InputError
from azjax.core.json_text import parse_json
from azjax.evaluation.engine_process import EngineError, EngineProcess
from azjax.evaluation.host_games import text_game
from azjax.games.game import AnyGame, State
from azjax.games.protocols import RepetitionGame
from azjax.games.registry import options_of

SIDES = ("attackers", "defenders")
_SECONDS_TO_STOP = 1.0
_MAX_ANSWERS = 10_000
_SANTORINI_SQUARES = 25
# Our rules as rules records in OpenTafl's notation.
_RULES_RECORDS = {
    "brandub": "dim:7 surf:n atkf:y ks:c cens: cenhe:tcnkmTCNKM",
    "ard_ri": "dim:7 esc:e surf:n atkf:y ks:s spd:1 cor: cenh: cenhe:",
    "tablut": "dim:9 esc:e surf:n atkf:y ks:c cor: cenh: cenhe:tcnkmTCNKM cens: linc:n",
    "tawlbwrdd": "dim:11 esc:e surf:n atkf:y ks:w cor: cen:",
    "hnefatafl": "dim:11 surf:y atkf:y ks:s cenhe:tcnkmTCNKM",
}
# Options that a record does not tell.
_FREE_OPTIONS = {"rules", "history", "repetition", "repetitions", "no_moves", "max_plies"}


class EngineProtocol(abc.ABC):
    """A conversation with one process about one game. All methods may raise `EngineError`."""

    farewell = "quit"

    def __init__(self, engine: EngineProcess, game: AnyGame, seconds: float) -> None:
        """`seconds`: for each answer."""
        self.engine, self.game, self.seconds = engine, game, seconds

    @classmethod
    def other_rules(cls, game: AnyGame) -> str:
        """In which rules programs of this protocol differ from `game`; empty if in none that is known."""
        del game
        return ""

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
    def choose(self, seat: int) -> str | None:
        """The program's move; None if it resigns."""

    def _move_after(self, head: str) -> str | None:
        """The move in the first line `HEAD MOVE`, None for `resign`; skips other lines, raises on `error ...`."""
        answer = self.engine.answer(self.seconds)
        while True:
            first, _, rest = answer.line().strip().partition(" ")
            if first == head:
                return rest.strip()
            if first == "resign":
                return None
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

    def choose(self, seat: int) -> str | None:
        move = self._command(f"genmove {'bw'[seat]}", self.seconds)
        return None if move.lower() == "resign" else move

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

    @classmethod
    def other_rules(cls, game: AnyGame) -> str:
        if not isinstance(game, RepetitionGame):
            return ""
        if options_of(game).get("repetition") == "never":
            return "OpenTafl draws at the third occurrence of a position, and here no occurrence is a draw"
        if game.repetitions == 3:
            return ""
        return "OpenTafl draws at the third occurrence of a position, as --repetitions 3 does"

    def greet(self, seconds: float) -> None:
        rules_record(self.game)  # refuses other games
        answer = self.engine.answer(seconds)
        while answer.line().strip() != "hello":
            pass

    def new_game(self, start: str | None, seat: int) -> None:
        self.engine.send(f"rules {rules_record(self.game)}")
        if start is not None:
            self.engine.send(f"position {position_record(start)}")
            # A record does not say whose turn it is. `side` is the side to move, not that of the program: it would play
            # the first moves of the defenders on a board of its own.
            self.engine.send(f"side {SIDES['ad'.index(start.rpartition(' ')[2])]}")
        self.engine.send("start")

    def play(self, move: str, mover: int, state: State) -> None:
        self.engine.send(f"opponent-move {move} {position_record(text_game(self.game).to_text(state))}")

    def choose(self, seat: int) -> str | None:
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

    def choose(self, seat: int) -> str | None:
        self.engine.send("go")
        return self._move_after("move")

    def _command(self, line: str, seconds: float) -> None:
        self.engine.send(line)
        answer = self.engine.answer(seconds)
        while (reply := answer.line().strip()) != "ok":
            head, _, reason = reply.partition(" ")
            if head == "error":
                raise EngineError(f"refusal of {line!r}: {reason.strip()}")


class SantoriniAi(EngineProtocol):
    """The protocol of santorini-ai, in which a position is heights, side to move, and the workers of both sides."""

    def greet(self, seconds: float) -> None:
        wanted = {"size": 5, "workers": 2, "placement": False}
        options = options_of(self.game) if self.game.name == "santorini" else {}
        if {name: options.get(name) for name in wanted} != wanted:
            raise InputError(f"the protocol is for santorini with size 5, workers 2 and no placement, got {self.game}")
        self.engine.send("ping")
        answer = self.engine.answer(seconds)
        while answer.line().strip() != "pong":
            pass

    def new_game(self, start: str | None, seat: int) -> None:
        self._position = text_game(self.game).to_text(self.game.init(jax.random.key(0))) if start is None else start

    def play(self, move: str, mover: int, state: State) -> None:
        self._position = text_game(self.game).to_text(state)

    def choose(self, seat: int) -> str:
        began = time.monotonic()
        self.engine.send(f"set_position {_santorini_record(self._position)}")
        found = self._last_position(began + self.seconds)
        if found is None or not found["is_final"]:
            self.engine.send("stop")
            found = self._last_position(time.monotonic() + _SECONDS_TO_STOP) or found
        if found is None:
            raise EngineError(f"silence: no move within {self.seconds:g} s")
        return _santorini_move(self._position, str(found["next_state"]))

    def _last_position(self, deadline: float) -> dict[str, Any] | None:
        """The last answer for the position before the deadline, or the first one that is final."""
        found = None
        for _ in range(_MAX_ANSWERS):
            line = self.engine.line(deadline)
            if line is None:
                return found
            try:
                message = parse_json(line)
            except ValueError:
                continue
            if not isinstance(message, dict) or message.get("type") != "best_move" or "next_state" not in message:
                continue
            # An answer for the position before may come late.
            if str(message.get("start_state")).partition("/")[0] != self._position[:_SANTORINI_SQUARES]:
                continue
            found = {**message, "is_final": message.get("trigger") in ("end_of_line", "stop_flag")}
            if found["is_final"]:
                return found
        raise EngineError(f"flood: {_MAX_ANSWERS:,} lines without an answer")


ENGINE_PROTOCOLS: dict[str, type[EngineProtocol]] = {
    "gtp": Gtp,
    "opentafl": OpenTafl,
    "santorini": SantoriniAi,
    "line": Line,
}


def rules_record(game: AnyGame) -> str:
    """The rules of a game of tafl in OpenTafl's notation.

    Raises:
      InputError: another game, or other rules than those that the game has by default.
    """
    options = options_of(game) if game.name in _RULES_RECORDS else {}
    if not options or options.get("rules", game.name) != game.name or options.keys() - _FREE_OPTIONS:
        other = " ".join([game.name, *(f"{option}={value}" for option, value in options.items())])
        raise InputError(f"opentafl is for {', '.join(_RULES_RECORDS)} by their default rules, not for {other}")
    start = position_record(text_game(game).to_text(game.init(jax.random.key(0))))
    return f"{_RULES_RECORDS[game.name]} start:{start}"


def position_record(text: str) -> str:
    """A position of tafl in OpenTafl's notation: from the first rank up, a slash at either end, no side to move."""
    rows = text.partition(" ")[0].split("/")
    return f"/{'/'.join(reversed(rows))}/"


def _santorini_record(text: str) -> str:
    """A position of Santorini in the notation of santorini-ai."""
    heights, digits = text[:_SANTORINI_SQUARES], text[_SANTORINI_SQUARES:]
    names = [f"{'ABCDE'[int(column)]}{5 - int(row)}" for row, column in zip(digits[::2], digits[1::2], strict=True)]
    own, other = (f"mortal:{','.join(pair)}" for pair in (names[:2], names[2:]))
    player = sum(map(int, heights)) % 2  # every ply builds a block
    return f"{heights}/{player + 1}/{'/'.join((own, other) if player == 0 else (other, own))}"


def _santorini_move(text: str, record: str) -> str:
    """The move that leads from a position to the record of the next; the record itself if no single move does."""
    before = _santorini_record(text)
    player = int(before.partition("/")[2][0])
    (heights, workers), (new_heights, new_workers) = (_heights_and_workers(each, player) for each in (before, record))
    left, reached = workers - new_workers, new_workers - workers
    built = [square for square, (old, new) in enumerate(zip(heights, new_heights, strict=False)) if old != new]
    if (len(left), len(reached)) != (1, 1) or len(built) > 1:
        return record
    # A winning step has no build there; here it has any: on the square that was left.
    (start,), (target,) = left, reached
    square = f"{'abcde'[built[0] % 5]}{5 - built[0] // 5}" if built else start
    return f"{start}-{target}^{square}"


def _heights_and_workers(record: str, player: int) -> tuple[str, set[str]]:
    """The heights, and the squares of the workers of a player, 1 or 2, in our notation; nothing of another text."""
    heights, *rest = record.split("/")
    if len(rest) != 3:
        return "", set()
    squares = rest[player].partition(":")[2].strip("#-").lower()
    return heights, set(squares.split(","))
