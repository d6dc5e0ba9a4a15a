"""Tables of a player's moves in the positions of a solved game.

Axis letters: `R` rows of the solution, `B` positions of a block, `K` slots of the compact table of legal actions.
"""

import dataclasses
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.players import Player, choose
from azjax.evaluation.positions import batches
from azjax.evaluation.solution import Block, Solution

_TOLERANCE = 1e-3  # of a player's probabilities, which are float32
_MAX_STORED = 1 << 24  # probabilities of a stored table, at most

Moves = tuple[Float[np.ndarray, "B K"], Float[np.ndarray, "B"]]
"""Probabilities by slot, 0 in holes, and value estimates of unfinished positions."""


@runtime_checkable
class PlayerTable(Protocol):
    """A player's moves and value estimates in the positions of a solved game."""

    def __call__(self, block: Block) -> Moves:
        """The moves in the positions of a block."""


def tabulate(player: Player, solution: Solution, key: PRNGKeyArray, *, batch_size: int = 1024) -> PlayerTable:
    """Makes the table of a player.

    A small table is computed at once and stored. A large one is computed whenever it is read, with equal results.

    Args:
      player: the player; `key` fixes the draws of a player that draws, such as a search with rollouts.
      solution: of its game.
      key: consumed by the player.
      batch_size: positions per call of the player.

    Raises:
      InputError: probabilities that do not sum to one over the legal actions; at once, or when the table is read.
    """
    table = _ComputedTable(player, solution.game.name, key, batch_size)
    if solution.num_rows * solution.game.max_legal_actions > _MAX_STORED:
        return table
    return _StoredTable(table, solution)


@dataclasses.dataclass(frozen=True)
class _ComputedTable:
    player: Player
    game: str
    key: PRNGKeyArray
    batch_size: int

    def __call__(self, block: Block) -> Moves:
        key = jax.random.fold_in(self.key, int(block.rows[0]))
        parts = []
        for number, (size, states) in enumerate(batches(block.states, self.batch_size)):
            choice = choose(self.player, jax.random.fold_in(key, number), states)
            parts.append([np.asarray(x)[:size] for x in (choice.probabilities, choice.value)])
        by_action, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        probabilities = np.where(block.legal, np.take_along_axis(by_action, block.actions.clip(0), axis=1), 0)
        total = probabilities.sum(axis=1)
        wrong = ~((np.abs(total - 1) < _TOLERANCE) & (probabilities >= 0).all(axis=1))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(
                f"{self.player.name} gives probability {total[first]} to the legal actions of position "
                f"{block.rows[first]} of {self.game}, and it must be 1; {int(wrong.sum())} of {len(wrong)} positions "
                "are wrong"
            )
        return probabilities, values


class _StoredTable:
    """The moves in all positions: float32 [R, K] and [R]."""

    def __init__(self, table: PlayerTable, solution: Solution) -> None:
        blocks = [block for _, block in solution.blocks()]
        everything: Block = jax.tree.map(lambda *leaves: np.concatenate(leaves), *blocks)
        self._probabilities = np.zeros((solution.num_rows, solution.game.max_legal_actions), np.float32)
        self._values = np.zeros(solution.num_rows, np.float32)
        self._probabilities[everything.rows], self._values[everything.rows] = table(everything)

    def __call__(self, block: Block) -> Moves:
        return self._probabilities[block.rows], self._values[block.rows]


def random_table(block: Block) -> Moves:
    """The `PlayerTable` of uniform play over the legal actions, without values (NaN)."""
    return _uniform(block.legal), np.full(len(block.rows), np.nan)


def optimal_table(block: Block) -> Moves:
    """The `PlayerTable` of uniform play over the best actions."""
    return _uniform(block.best), block.values


def epsilon_optimal_table(epsilon: float) -> PlayerTable:
    """The `PlayerTable` of best play that makes a random legal move instead with probability `epsilon`.

    Raises:
      InputError: epsilon outside 0..1.
    """
    if not 0 <= epsilon <= 1:
        raise InputError(f"epsilon must be 0..1, got {epsilon}")

    def table(block: Block) -> Moves:
        return (1 - epsilon) * _uniform(block.best) + epsilon * _uniform(block.legal), block.values

    return table


def _uniform(mask: Bool[np.ndarray, "B K"]) -> Float[np.ndarray, "B K"]:
    uniform: np.ndarray = mask / mask.sum(axis=1, keepdims=True)
    return uniform
