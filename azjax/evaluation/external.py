"""External programs as players.

A program may resign, which is a lost game like any other. It loses a game by its own fault there: an illegal move, no
move in time, a crash, endless output, a refusal. It is then ended, and started again for its next game. A program that
cannot be started, or does not know the protocol or the game, is an error, and no game is played.
"""

import concurrent.futures
import dataclasses
import time
from collections.abc import Sequence

from jaxtyping import PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.engine_process import EngineError, EngineProcess
from azjax.evaluation.engine_protocols import ENGINE_PROTOCOLS, EngineProtocol
from azjax.evaluation.host_games import host_step, rows_of, start_text
from azjax.evaluation.seats import RESIGNATION, Move, Rows, SeatNumbers, Seats
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_from_text, action_to_text
from azjax.search.budget import check_seconds

_SECONDS_TO_START = 30.0


@dataclasses.dataclass(frozen=True)
class ExternalPlayer:
    """An external program that plays.

    Attributes:
      name: for display.
      protocol: `gtp`, `opentafl`, `santorini` or `line`, see `azjax.evaluation.engine_protocols`.
      command: starts the program.
      seconds: for each answer; with `santorini` it thinks so long.
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
        check_seconds(self.seconds)
        if not self.name.isprintable():  # half of a character of UTF-8 is not
            raise InputError(f"the name of a program must be printable text, got {self.name!r}")
        if self.processes < 1:
            raise InputError(f"processes must be at least 1, got {self.processes}")

    def start(self, game: AnyGame) -> EngineProtocol:
        """A conversation with a new process, which has confirmed the protocol and the game.

        Raises:
          InputError: it could not be started, or does not know the protocol or the game.
        """
        engine = None
        try:
            engine = EngineProcess(self.command, self.seconds)
            talk = ENGINE_PROTOCOLS[self.protocol](engine, game, self.seconds)
            talk.greet(max(self.seconds, _SECONDS_TO_START))
        except (EngineError, ValueError) as error:
            if engine is not None:
                engine.close()
            raise InputError(f"{self.name} cannot play {game.name}: {error}") from None
        return talk


@dataclasses.dataclass
class _Game:
    """One game of a program.

    Attributes:
      state: the last state that the program knows.
      talk: the conversation; None until the program is started.
      seat: 0 or 1.
      start: the start's text; None for the game's own.
      num_sent: actions that the program knows; -1 until it knows of the game.
    """

    state: State | None = None
    talk: EngineProtocol | None = None
    seat: int = 0
    start: str | None = None
    num_sent: int = -1


class ExternalSeats(Seats):
    """A program's seats in games that are played side by side. `close` ends all processes."""

    def __init__(self, player: ExternalPlayer, game: AnyGame) -> None:
        super().__init__()
        self._player, self._game = player, game
        self._games = [_Game() for _ in range(player.processes)]
        self._games[0].talk = player.start(game)  # so that an error comes before the first game

    def begin(self, seats: SeatNumbers, starts: State, states: State) -> None:
        """Begins new games, at most `processes`; the opening is sent together with the moves after it."""
        for row, seat in enumerate(seats.tolist()):
            state = rows_of(starts, row)
            self._games[row] = _Game(state, self._games[row].talk, seat, start_text(self._game, state))

    def choose(self, key: PRNGKeyArray, states: State, rows: Rows, played: Sequence[Sequence[int]]) -> Sequence[Move]:
        """The program's moves, or why games end: see `Move`.

        Raises:
          InputError: the program cannot be started again, or cannot begin at the start.
        """
        threads = concurrent.futures.ThreadPoolExecutor(len(self._games))
        try:
            return list(threads.map(self._move, rows.tolist(), [played[row] for row in rows]))
        except BaseException:
            self.close()  # which wakes the threads that wait for an answer
            raise
        finally:
            threads.shutdown()

    def close(self) -> None:
        """Ends the processes."""
        for game in self._games:
            if game.talk is not None:
                game.talk.engine.close(game.talk.farewell)
                game.talk = None

    def _move(self, row: int, played: Sequence[int]) -> Move:
        seat, game = self._games[row], self._game
        if seat.talk is None:
            seat.talk = self._player.start(game)
        assert seat.state is not None
        try:
            if seat.num_sent < 0:
                seat.talk.new_game(seat.start, seat.seat)
                seat.num_sent = 0
            for action in played[seat.num_sent :]:
                move, mover = action_to_text(game, seat.state, action), int(seat.state.current_player)
                seat.state = host_step(game, seat.state, action)
                seat.talk.play(move, mover, seat.state)
            began = time.perf_counter()
            answer = seat.talk.choose(seat.seat)
            self.seconds.append(time.perf_counter() - began)
            if answer is None:
                return RESIGNATION
            try:
                action = action_from_text(game, seat.state, answer)
            except ValueError:
                raise EngineError(f"illegal move: {answer[:40]!r}") from None
        except ValueError as error:
            raise InputError(f"{self._player.name} cannot play this game: {error}") from None
        except EngineError as error:
            seat.talk.engine.close()
            seat.talk = None
            return str(error)
        seat.state, seat.num_sent = host_step(game, seat.state, action), len(played) + 1
        return action
