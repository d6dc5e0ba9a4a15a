"""What every solution of a game offers, whichever way it was found and is kept.

Axis letters: `R` rows of a solution's tables, `K` slots of the compact table of legal actions, `n` positions of a
block.
"""

import abc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import chex
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation.positions import HOLE
from azjax.games.game import Game
from azjax.games.protocols import earlier_positions

UNREACHABLE = -1  # row of a position that the solution does not hold
BLOCK_CHILDREN = 1 << 20  # slots of a block, at most; they bound the memory of a walk over all positions

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how many positions are done, and of how many (None where that is not known yet)."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Tells nobody."""


class Block(NamedTuple):
    """Some unfinished positions of a solved game, and where their actions lead: arrays [n] and, by slot, [n, K].

    Attributes:
      rows: int [n]; of the positions.
      states: the positions; every leaf [n, ...].
      actions: int32; the legal actions, `HOLE` in holes.
      children: int32; the row of the position after each action, `HOLE` where the game ends and in holes.
      rewards: float32; the mover's reward of each action, 0 in holes.
      values: float32 [n]; what the side to move gets with best play.
      action_values: float32; what it gets by each action and best play after it, -inf in holes.
    """

    rows: np.ndarray
    states: Any
    actions: np.ndarray
    children: np.ndarray
    rewards: np.ndarray
    values: np.ndarray
    action_values: np.ndarray

    @property
    def legal(self) -> np.ndarray:
        """bool [n, K]."""
        return self.actions != HOLE

    @property
    def goes_on(self) -> np.ndarray:
        """bool [n, K]: the actions after which the game is not over."""
        return self.children != HOLE

    @property
    def best(self) -> np.ndarray:
        """bool [n, K]: the actions that keep the value of the position."""
        return self.legal & (self.action_values == self.values[:, None])

    @property
    def current_player(self) -> np.ndarray:
        """int32 [n]."""
        return np.asarray(self.states.current_player)


@runtime_checkable
class BestMoves(Protocol):
    """What the optimal player reads: a pytree of arrays on the device."""

    def best_moves(self, game: Game, states: Any) -> tuple[chex.Array, chex.Array, chex.Array, chex.Array]:
        """Of B positions, inside jitted code.

        Returns:
          known: bool [B]; the solution holds the position, or it is finished. The rest counts where this is True.
          values: float32 [B]; for the side to move, 0 after the end.
          actions: int32 [B, K]; 0 in holes.
          best: bool [B, K]; the actions that keep the value; all False after the end.
        """


class Summary(NamedTuple):
    """Facts about a solved game.

    Positions that a symmetry maps on each other count once where it says so. Games are counted as sequences of moves;
    a game's result is the reward of its last move. Both are None where positions are too many to count them.
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
    """Every position that the start of a game leads to, and what best play makes of it.

    Positions have rows, 0..num_rows-1, where tables by row keep what belongs to them. A position that can come at
    several plies stands at the latest of them, so that moves lead to later plies.
    """

    game: Game

    @property
    @abc.abstractmethod
    def num_states(self) -> int:
        """Reachable positions, finished ones too."""

    @property
    @abc.abstractmethod
    def num_rows(self) -> int:
        """R."""

    @property
    @abc.abstractmethod
    def num_plies(self) -> int:
        """Plies at which there are positions: one more than the longest game has moves."""

    @property
    @abc.abstractmethod
    def num_unfinished(self) -> int:
        """Reachable positions that are not the end."""

    @abc.abstractmethod
    def unfinished(self, ply: int) -> np.ndarray:
        """int [n], ascending: the rows of the unfinished positions of a ply."""

    @abc.abstractmethod
    def block(self, rows: np.ndarray) -> Block:
        """These unfinished positions, and where their actions lead."""

    @abc.abstractmethod
    def index(self, states: Any) -> np.ndarray:
        """int [B]: the row of each state.

        Raises:
          ValueError: a state that the start does not lead to.
        """

    @abc.abstractmethod
    def best_moves(self) -> BestMoves:
        """What the optimal player reads."""

    @abc.abstractmethod
    def summary(self) -> Summary:
        """Counts and values.

        Raises:
          ValueError: there are rewards before the end.
        """

    @abc.abstractmethod
    def check_results(self) -> None:
        """Holds that a game's result is the reward of its last move, as counts of wins and draws need it.

        Raises:
          ValueError: there are rewards before the end.
        """

    def blocks(self, *, backward: bool = False) -> Iterator[tuple[int, Block]]:
        """All unfinished positions, each block with its ply; by ascending ply, or from the end to the start."""
        size = max(1, BLOCK_CHILDREN // self.game.max_legal_actions)
        for ply in reversed(range(self.num_plies)) if backward else range(self.num_plies):
            rows = self.unfinished(ply)
            for start in range(0, len(rows), size):
                yield ply, self.block(rows[start : start + size])


def check_solvable(game: Game, start: Any) -> None:
    """Holds that a position's value depends on nothing but the position.

    Raises:
      ValueError: the game forbids or ends repetitions.
    """
    if earlier_positions(game, start) is not None:
        raise InputError(
            f"{game.name} cannot be solved: its values depend on which positions a game went through before"
        )


def too_many(game: Game, max_states: int | None, found: int) -> ValueError:
    """The error of a game with more positions than it may have."""
    return ValueError(f"{game.name} has more than max_states = {max_states} reachable positions: {found} found so far")


def repeats(game: Game) -> ValueError:
    """The error of a game in which a position comes back."""
    return ValueError(f"{game.name}: positions repeat within a game, where backward induction does not apply")
