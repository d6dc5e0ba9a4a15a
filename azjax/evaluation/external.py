"""Players that are other people's programs.

What the program does wrong in a game is a loss of that game: an illegal move, no move in time, a crash, output without
end, a refusal. It is then ended, and started again for its next game. That it cannot be started, or does not speak the
language or know the game, is an error, and nothing is played.
"""

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import Any

import chex
import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation.host_step import step_one
from azjax.evaluation.openings import start_text
from azjax.evaluation.program import Program, ProgramError
from azjax.evaluation.protocols import LANGUAGES
from azjax.games.game import Game
from azjax.games.protocols import action_from_text, action_to_text

_SECONDS_TO_START = 30.0


@dataclasses.dataclass(frozen=True)
class ExternalPlayer:
    """A program that plays.

    Attributes:
      name: for people.
      language: `gtp`, `opentafl` or `line`, see `azjax.evaluation.protocols`.
      command: that starts it.
      seconds: for each answer.
      processes: games that are played side by side, each by a process of its own.
    """

    name: str
    language: str
    command: str
    seconds: float = 10.0
    processes: int = 1

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InputError(f"unknown language {self.language!r}; available: {', '.join(LANGUAGES)}")
        if not self.seconds > 0:
            raise InputError(f"seconds must be more than 0, got {self.seconds}")
        if self.processes < 1:
            raise InputError(f"processes must be at least 1, got {self.processes}")

    def start(self, game: Game) -> Program:
        """A running program that has been greeted.

        Raises:
          RuntimeError: it could not be started, or does not understand.
        """
        program = None
        try:
            program = Program(self.command)
            LANGUAGES[self.language].greet(program, game, max(self.seconds, _SECONDS_TO_START))
        except (ProgramError, ValueError) as error:
            if program is not None:
                program.close()
            raise RuntimeError(f"{self.name} cannot play {game.name}: {error}") from None
        return program


@dataclasses.dataclass
class _Seat:
    """One game of a program: the state that it knows, and how many moves led there; no program before the first."""

    program: Program | None = None
    seat: int = 0
    start: str | None = None
    state: Any = None
    told: int = -1


class ExternalSeats:
    """A program's seats in games that are played side by side. `close` ends all processes."""

    def __init__(self, player: ExternalPlayer, game: Game) -> None:
        self._player, self._game, self._language = player, game, LANGUAGES[player.language]
        self._seats = [_Seat() for _ in range(player.processes)]
        self._seats[0].program = player.start(game)  # so that an error comes before the first game

    def begin(self, seats: np.ndarray, starts: Any, states: Any) -> None:
        """Sits down at new games, at most `processes`; the moves that led to `states` are told with those after."""
        del states
        for row, seat in enumerate(seats.tolist()):
            state = jax.tree.map(lambda leaf, at=row: leaf[at], starts)
            self._seats[row] = _Seat(self._seats[row].program, seat, start_text(self._game, state), state)

    def choose(self, key: chex.PRNGKey, states: Any, rows: np.ndarray, played: Sequence[Sequence[int]]) -> list:
        """The program's moves, or why it loses a game.

        Raises:
          RuntimeError: the program cannot be started again, or cannot begin at the start.
        """
        del key, states
        with concurrent.futures.ThreadPoolExecutor(len(self._seats)) as threads:
            return list(threads.map(self._move, rows, [played[row] for row in rows]))

    def observe(self, actions: np.ndarray) -> None:
        """Moves are told when the program is asked for the next one."""

    def close(self) -> None:
        """Ends the programs."""
        for seat in self._seats:
            if seat.program is not None:
                seat.program.close(self._language.farewell)
                seat.program = None

    def _move(self, row: int, played: Sequence[int]) -> int | str:
        seat, seconds = self._seats[row], self._player.seconds
        if seat.program is None:
            seat.program = self._player.start(self._game)
        try:
            if seat.told < 0:
                self._language.new_game(seat.program, self._game, seat.start, seat.seat, seconds)
                seat.told = 0
            for action in played[seat.told :]:
                move, mover = action_to_text(self._game, seat.state, action), int(seat.state.current_player)
                seat.state = step_one(self._game, seat.state, action)
                self._language.tell(seat.program, self._game, move, mover, seat.state, seconds)
            move = self._language.ask(seat.program, seat.seat, seconds)
            try:
                action = action_from_text(self._game, seat.state, move)
            except ValueError:
                raise ProgramError(f"illegal move: {move[:40]!r}") from None
        except ValueError as error:
            raise RuntimeError(f"{self._player.name} cannot play this game: {error}") from None
        except ProgramError as error:
            seat.program.close()
            seat.program = None
            return str(error)
        seat.state, seat.told = step_one(self._game, seat.state, action), len(played) + 1
        return action
