"""The interface of every solution of a game, however it was found and is stored.

Axis letters: `R` rows of a solution's tables, `K` slots of the compact table of legal actions, `B` positions of a
block.
"""

import abc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int32

from azjax.core.errors import InputError
from azjax.evaluation.positions import HOLE
from azjax.games.endings import EndingsGame
from azjax.games.game import AnyGame, Game, S, State
from azjax.games.protocols import earlier_positions

UNREACHABLE = -1  # row of a position that the solution does not hold
BLOCK_CHILDREN = 1 << 20  # slots of a block, at most; they bound the memory of a walk over all positions

_T = TypeVar("_T")

Progress = Callable[[str, int, int | None], None]
"""Called with the task, the number of positions done, and their total (None while it is unknown)."""


def no_progress(task: str, done: int, total: int | None) -> None:
    """Reports nothing."""


def in_parallel(work: Callable[[np.ndarray], _T], items: np.ndarray, size: int) -> Iterator[_T]:
    """Yields the results of `work` on pieces of an array, in their order, one piece per core at a time.

    Args:
      work: on a piece.
      items: the array.
      size: of a piece, at most.
    """
    executor = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from executor.map(work, (items[start : start + size] for start in range(0, len(items), size)))
    finally:
        executor.shutdown(cancel_futures=True)


class Block(NamedTuple):
    """Some unfinished positions of a solved game, and where their actions lead.

    Attributes:
      rows: of the positions.
      states: the positions; every leaf [B, ...].
      actions: the legal actions by slot, `HOLE` in holes.
      children: the row of the position after each action, `HOLE` where the game ends and in holes.
      rewards: the mover's reward of each action, 0 in holes.
      values: the result for the side to move with best play.
      action_values: its result by each action and best play after it, -inf in holes.
    """

    rows: Int[np.ndarray, "B"]
    states: State
    actions: Int32[np.ndarray, "B K"]
    children: Int32[np.ndarray, "B K"]
    rewards: Float32[np.ndarray, "B K"]
    values: Float32[np.ndarray, "B"]
    action_values: Float32[np.ndarray, "B K"]

    @property
    def legal(self) -> Bool[np.ndarray, "B K"]:
        """The slots that are no holes."""
        return np.asarray(self.actions != HOLE)

    @property
    def goes_on(self) -> Bool[np.ndarray, "B K"]:
        """The actions that do not end the game."""
        return np.asarray(self.children != HOLE)

    @property
    def best(self) -> Bool[np.ndarray, "B K"]:
        """The actions that keep the value of the position."""
        return np.asarray(self.legal & (self.action_values == self.values[:, None]))

    @property
    def current_player(self) -> Int[np.ndarray, "B"]:
        return np.asarray(self.states.current_player)


BestActions = tuple[Bool[Array, "B"], Float32[Array, "B"], Int32[Array, "B K"], Bool[Array, "B K"]]


@runtime_checkable
class BestMoves(Protocol):
    """The parameters of the optimal player: a pytree of arrays on the device."""

    def best_moves(self, game: AnyGame, states: State) -> BestActions:
        """The best moves in B positions, inside jitted code.

        Returns:
          known: the solution holds the position, or it is finished. The other results are valid only there.
          values: for the side to move, 0 after the end.
          actions: by slot, 0 in holes.
          best: the actions that keep the value; all False after the end.
        """


class Summary(NamedTuple):
    """Facts about a solved game.

    Positions that a symmetry maps on each other count once where the name says so. `games` counts sequences of moves;
    a game's result is the reward of its last move. Both counts are None where there are too many positions for them.
    """

    reachable: int
    terminal: int
    won: int
    drawn: int
    lost: int
    value_first_player: float
    best_first_actions: tuple[int, ...]
    longest_game: int
    reachable_up_to_symmetry: int | None = None
    terminal_up_to_symmetry: int | None = None
    games: int | None = None
    games_first_wins: int | None = None
    games_second_wins: int | None = None
    games_drawn: int | None = None


class Solution(abc.ABC):
    """Every position that can be reached from the start of a game, with its value under best play.

    Positions have rows, 0..num_rows-1, which index tables. A position that occurs at several plies belongs to the
    latest of them, so that moves lead to later plies.
    """

    game: AnyGame

    @property
    @abc.abstractmethod
    def num_states(self) -> int:
        """Reachable positions, finished ones included."""

    @property
    @abc.abstractmethod
    def num_rows(self) -> int:
        """R."""

    @property
    @abc.abstractmethod
    def num_plies(self) -> int:
        """Plies that have positions: one more than the longest game has moves."""

    @property
    @abc.abstractmethod
    def num_unfinished(self) -> int:
        """Reachable positions that are not the end."""

    @abc.abstractmethod
    def unfinished(self, ply: int) -> Int[np.ndarray, "B"]:
        """The rows of the unfinished positions of a ply, ascending."""

    @abc.abstractmethod
    def block(self, rows: Int[np.ndarray, "B"]) -> Block:
        """These unfinished positions, and where their actions lead."""

    @abc.abstractmethod
    def index(self, states: State) -> Int32[np.ndarray, "B"]:
        """The row of each state of a batch.

        Raises:
          InputError: a state that cannot be reached from the start, or see `check_states`.
        """

    @abc.abstractmethod
    def best_moves(self) -> BestMoves:
        """The parameters of the optimal player."""

    @abc.abstractmethod
    def summary(self) -> Summary:
        """Counts and values.

        Raises:
          InputError: the game has rewards before the end.
        """

    @abc.abstractmethod
    def check_results(self) -> None:
        """Checks that a game's result is the reward of its last move, so that wins and draws can be counted.

        Raises:
          InputError: the game has rewards before the end.
        """

    def blocks(self, *, backward: bool = False) -> Iterator[tuple[int, Block]]:
        """All unfinished positions in blocks, each with its ply; by ascending ply, or from the end to the start."""
        size = max(1, BLOCK_CHILDREN // self.game.max_legal_actions)
        for ply in reversed(range(self.num_plies)) if backward else range(self.num_plies):
            rows = self.unfinished(ply)
            for start in range(0, len(rows), size):
                yield ply, self.block(rows[start : start + size])


def check_solvable(game: Game[S], start: S) -> None:
    """Checks that a position's value depends on nothing but the position.

    Raises:
      InputError: the game forbids or ends repetitions.
    """
    if earlier_positions(game, start) is not None:
        hint = "; --endings solves positions with few pieces" if isinstance(game, EndingsGame) else ""
        raise InputError(
            f"{game.name} cannot be solved: its values depend on which positions a game went through before{hint}"
        )


def check_rows(game: AnyGame, rows: Int32[np.ndarray, "B"], problem: Callable[[int], str]) -> None:
    """Checks that all states were found.

    Raises:
      InputError: a state has the row `UNREACHABLE`; `problem(number)` says why.
    """
    if np.any(rows == UNREACHABLE):
        first = int(np.argmax(rows == UNREACHABLE))
        raise InputError(f"{game.name}: state {first} of {len(rows)} is {problem(first)}")


def too_many(game: AnyGame, max_states: int | None, found: int) -> InputError:
    """The error of a game with more positions than `max_states`."""
    return InputError(
        f"{game.name} has more than max_states = {max_states} reachable positions: {found} found so far; "
        "--max-states sets another limit"
    )


def repeats(game: AnyGame) -> InputError:
    """The error of a game in which a position comes back, or which goes on after its last ply."""
    return InputError(
        f"{game.name}: positions repeat within a game, where backward induction does not apply, or games outlast "
        f"max_plies = {game.max_plies}"
    )
