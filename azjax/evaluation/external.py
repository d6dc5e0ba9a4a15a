"""External programs as players.

A program loses a game by its own fault there: an illegal move, no move in time, a crash, endless output, a refusal. It
is then ended, and started again for its next game. A program that cannot be started, or does not know the protocol or
the game, is an error, and no game is played.
"""

import concurrent.futures
import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Int, Int32, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.engine_process import EngineError, EngineProcess
from azjax.evaluation.engine_protocols import ENGINE_PROTOCOLS
from azjax.evaluation.host_games import host_step, start_text
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_from_text, action_to_text

_SECONDS_TO_START = 30.0


@dataclasses.dataclass(frozen=True)
class ExternalPlayer:
    """An external program that plays.

    Attributes:
      name: for display.
      protocol: `gtp`, `opentafl` or `line`, see `azjax.evaluation.engine_protocols`.
      command: starts the program.
      seconds: for each answer.
      processes: games that are played side by side, each by a process of its own.
    """

    name: str
    protocol: str
    command: str
    seconds: float = 10.0
    processes: int = 1

    def __post_init__(self) -> None:
        if self.protocol not in ENGINE_PROTOCOLS:
            raise InputError(f"unknown protocol {self.protocol!r}; available: {', '.join(ENGINE_PROTOCOLS)}")
        if not self.seconds > 0:
            raise InputError(f"seconds must be more than 0, got {self.seconds}")
        if self.processes < 1:
            raise InputError(f"processes must be at least 1, got {self.processes}")

    def start(self, game: AnyGame) -> EngineProcess:
        """A running process that has confirmed the protocol and the game.

        Raises:
          RuntimeError: it could not be started, or does not know the protocol or the game.
        """
        engine = None
        try:
            engine = EngineProcess(self.command)
            ENGINE_PROTOCOLS[self.protocol].greet(engine, game, max(self.seconds, _SECONDS_TO_START))
        except (EngineError, ValueError) as error:
            if engine is not None:
                engine.close()
            raise RuntimeError(f"{self.name} cannot play {game.name}: {error}") from None
        return engine


@dataclasses.dataclass
class _Seat:
    """One game of a program.

    Attributes:
      state: the last state that the program knows.
      engine: None until the program is started.
      seat: 0 or 1.
      start: the start's text; None for the game's own.
      num_sent: actions that the program knows; -1 until it knows of the game.
    """

    state: State | None = None
    engine: EngineProcess | None = None
    seat: int = 0
    start: str | None = None
    num_sent: int = -1


class ExternalSeats:
    """A program's seats in games that are played side by side. `close` ends all processes."""

    def __init__(self, player: ExternalPlayer, game: AnyGame) -> None:
        self._player, self._game, self._protocol = player, game, ENGINE_PROTOCOLS[player.protocol]
        self._seats = [_Seat() for _ in range(player.processes)]
        self._seats[0].engine = player.start(game)  # so that an error comes before the first game

    def begin(self, seats: Int[np.ndarray, "G"], starts: State, states: State) -> None:
        """Begins new games, at most `processes`; the opening is sent together with the moves after it."""
        del states
        for row, seat in enumerate(seats.tolist()):
            state = jax.tree.map(lambda leaf, row=row: leaf[row], starts)
            self._seats[row] = _Seat(state, self._seats[row].engine, seat, start_text(self._game, state))

    def choose(
        self, key: PRNGKeyArray, states: State, rows: Int[np.ndarray, "n"], played: Sequence[Sequence[int]]
    ) -> Sequence[int | str]:
        """The program's moves, or the reason why it loses a game.

        Raises:
          RuntimeError: the program cannot be started again, or cannot begin at the start.
        """
        del key, states
        with concurrent.futures.ThreadPoolExecutor(len(self._seats)) as threads:
            return list(threads.map(self._move, rows.tolist(), [played[row] for row in rows]))

    def observe(self, actions: Int32[np.ndarray, "G"]) -> None:
        """Does nothing: moves are sent before the program's next move."""

    def close(self) -> None:
        """Ends the processes."""
        for seat in self._seats:
            if seat.engine is not None:
                seat.engine.close(self._protocol.farewell)
                seat.engine = None

    def _move(self, row: int, played: Sequence[int]) -> int | str:
        seat, game, protocol, seconds = self._seats[row], self._game, self._protocol, self._player.seconds
        if seat.engine is None:
            seat.engine = self._player.start(game)
        assert seat.state is not None
        try:
            if seat.num_sent < 0:
                protocol.new_game(seat.engine, game, seat.start, seat.seat, seconds)
                seat.num_sent = 0
            for action in played[seat.num_sent :]:
                move, mover = action_to_text(game, seat.state, action), int(seat.state.current_player)
                seat.state = host_step(game, seat.state, action)
                protocol.play(seat.engine, game, move, mover, seat.state, seconds)
            move = protocol.choose(seat.engine, seat.seat, seconds)
            try:
                action = action_from_text(game, seat.state, move)
            except ValueError:
                raise EngineError(f"illegal move: {move[:40]!r}") from None
        except ValueError as error:
            raise RuntimeError(f"{self._player.name} cannot play this game: {error}") from None
        except EngineError as error:
            seat.engine.close()
            seat.engine = None
            return str(error)
        seat.state, seat.num_sent = host_step(game, seat.state, action), len(played) + 1
        return action
