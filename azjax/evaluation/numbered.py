"""Exact solving of games that number their positions: hundreds of millions of numbers, a byte or two each.

Positions are found ply by ply in a table with a byte a number; then only the unfinished ones are kept, by rank: row r
is the r-th number that is one. Where actions lead is worked out anew whenever it is needed, in batches, so that no
table by slot is ever kept. Axis letters: `B` batch, `R` rows, `K` slots of the compact table of legal actions, `W`
words of 32 numbers.

A score tells value and distance at once, as chess engines score mates: a win in d plies is 127 - d, a loss in d plies
-(127 - d), a draw 0, for the side to move. The highest score of an action is the best: it wins as soon and loses as
late as possible.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.evaluation.positions import HOLE
from azjax.evaluation.solution import (
    BLOCK_CHILDREN,
    UNREACHABLE,
    Block,
    Progress,
    Solution,
    Summary,
    check_solvable,
    no_progress,
    repeats,
    too_many,
)
from azjax.games.game import Game

MAX_PLIES = 126
_WIN = 127  # score of a win in 0 plies
_LOWEST = -128  # below every score
_FINISHED, _UNREACHED = 254, 255  # in the table of plies by number
_WORD = 32
_SMALL = 16  # batches of at most this part of a full one are padded less
_SAMPLE = 1024


@pytree_dataclass
class Scores:
    """The scores of unfinished positions by rank, on the host or on the device.

    Attributes:
      reached: uint32 [W]; bit b of word w tells whether number 32 w + b has a row.
      before: uint32 [W]; the rows of lower words.
      scores: int8 [R].
    """

    reached: chex.Array
    before: chex.Array
    scores: chex.Array

    def find(self, numbers: chex.Array) -> chex.Array:
        """int32: the row of each number, `UNREACHABLE` where there is none."""
        at, bit = numbers >> jnp.uint32(5), numbers & jnp.uint32(31)
        word = jnp.asarray(self.reached)[at]
        below = word & ((jnp.uint32(1) << bit) - jnp.uint32(1))
        rows = jnp.asarray(self.before)[at] + jax.lax.population_count(below)
        return jnp.where(word >> bit & jnp.uint32(1) == 1, rows.astype(jnp.int32), UNREACHABLE)

    def judge(self, moves: "_Moves") -> "_Judged":
        """What the moves of B unfinished positions are worth."""
        rows = self.find(moves.numbers)
        later = jnp.asarray(self.scores).at[rows].get(mode="clip")
        later = later - jnp.sign(later)  # one ply farther away
        later = jnp.where(moves.same_player, later, -later)
        scores = jnp.where(moves.ends, moves.rewards.astype(jnp.int8) * jnp.int8(_WIN - 1), later)
        return _Judged(
            actions=jnp.where(moves.valid, moves.actions, HOLE),
            children=jnp.where(moves.valid & ~moves.ends, rows, HOLE),
            rewards=jnp.where(moves.valid, moves.rewards, 0.0),
            scores=jnp.where(moves.valid, scores, jnp.int8(_LOWEST)),
        )

    def best_moves(self, game: Game, states: Any) -> tuple[chex.Array, chex.Array, chex.Array, chex.Array]:
        """See `BestMoves`."""
        judged = self.judge(_Moves.of(game, states))
        known = states.terminated | (self.find(jax.vmap(game.position_number)(states)) != UNREACHABLE)
        legal = judged.actions != HOLE
        values = jnp.sign(jnp.max(judged.scores, axis=1))
        best = legal & (jnp.sign(judged.scores) == values[:, None])
        values = jnp.where(states.terminated, 0, values).astype(jnp.float32)
        return known, values, jnp.where(legal, judged.actions, 0), best


class _Judged(NamedTuple):
    """By slot, [B, K]: actions, children and rewards as in `Block`, and scores int8, `_LOWEST` in holes."""

    actions: chex.Array
    children: chex.Array
    rewards: chex.Array
    scores: chex.Array


class _Moves(NamedTuple):
    """All moves of B positions by slot, [B, K]; what stands in holes has no meaning.

    Attributes:
      actions: int32.
      valid: bool; no hole.
      numbers: uint32; of the position after the move.
      ends: bool; the move ends the game.
      rewards: float32; of the mover.
      same_player: bool; the mover is to move again.
    """

    actions: chex.Array
    valid: chex.Array
    numbers: chex.Array
    ends: chex.Array
    rewards: chex.Array
    same_player: chex.Array

    @classmethod
    def of(cls, game: Game, states: Any) -> "_Moves":
        actions, valid = jax.vmap(game.legal_slots)(states)
        children = jax.vmap(jax.vmap(game.step, (None, 0)))(states, actions)
        mover = states.current_player[:, None]
        return cls(
            actions=actions,
            valid=valid,
            numbers=jax.vmap(jax.vmap(game.position_number))(children),
            ends=children.terminated,
            rewards=jnp.where(mover == 0, children.rewards[..., 0], children.rewards[..., 1]),
            same_player=children.current_player == mover,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class NumberedSolution(Solution):
    """A solution by position number; only unfinished positions have rows.

    Attributes:
      game: the game.
      table: the scores; NumPy leaves.
      plies: uint8 [R]; of each position, the latest at which it can come.
      terminal: reachable positions that are the end.
    """

    game: Game
    table: Scores
    plies: np.ndarray
    terminal: int

    @property
    def num_states(self) -> int:
        return self.num_rows + self.terminal

    @property
    def num_rows(self) -> int:
        return len(self.plies)

    @functools.cached_property
    def num_plies(self) -> int:
        # The last unfinished positions have moves, and all of these end the game.
        return int(self.plies.max()) + 2

    @property
    def num_unfinished(self) -> int:
        return self.num_rows

    @property
    def values(self) -> np.ndarray:
        """int8 [R]: what the side to move gets with best play."""
        return np.sign(self.table.scores)

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """uint32 [R], ascending."""
        return np.flatnonzero(np.unpackbits(self.table.reached.view(np.uint8), bitorder="little")).astype(np.uint32)

    @functools.cached_property
    def _on_device(self) -> Scores:
        return jax.tree.map(jnp.asarray, self.table)

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """int [n]: plies to the end when the winner hurries and the loser delays; 0 for draws."""
        scores = self.table.scores[rows].astype(int)
        return np.where(scores == 0, 0, _WIN - abs(scores))

    def unfinished(self, ply: int) -> np.ndarray:
        return np.flatnonzero(self.plies == ply)

    def block(self, rows: np.ndarray) -> Block:
        states, judged = self._judge(rows)
        return Block(
            rows=rows,
            states=states,
            actions=judged.actions,
            children=judged.children,
            rewards=judged.rewards,
            values=np.sign(self.table.scores[rows]).astype(np.float32),
            action_values=np.where(judged.scores == _LOWEST, -np.inf, np.sign(judged.scores)).astype(np.float32),
        )

    def _judge(self, rows: np.ndarray) -> tuple[Any, "_Judged"]:
        """The states of these rows, and what `Scores.judge` makes of them, on the host."""
        states = _unpack(self.game, _padded(self.game, self.numbers[rows]))
        judged = _judge(self._on_device, _moves(self.game, states))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(rows)], (states, judged))

    def index(self, states: Any) -> np.ndarray:
        """int32 [B]: the row of each unfinished state.

        Raises:
          ValueError: a state that is finished, or that the start does not lead to.
        """
        terminated = np.asarray(states.terminated)
        rows = np.where(terminated, UNREACHABLE, _find(self.game, self._on_device, states))
        if np.any(rows == UNREACHABLE):
            first = int(np.argmax(rows == UNREACHABLE))
            problem = "finished" if terminated[first] else "not reachable from the start"
            raise InputError(f"{self.game.name}: state {first} of {len(rows)} is {problem}")
        return rows

    def best_moves(self) -> Scores:
        return self._on_device

    def check_results(self) -> None:
        """Solving has checked it."""

    def summary(self) -> Summary:
        start = self.block(self.unfinished(0))
        return Summary(
            reachable=self.num_states,
            terminal=self.terminal,
            won=int(np.count_nonzero(self.table.scores > 0)),
            drawn=int(np.count_nonzero(self.table.scores == 0)),
            lost=int(np.count_nonzero(self.table.scores < 0)),
            value_first_player=float(start.values[0]),
            best_first_actions=tuple(sorted(start.actions[start.best].tolist())),
            longest_game=self.num_plies - 1,
        )

    def is_consistent(self) -> bool:
        """Whether a sample of the scores follows from the scores one ply ahead by the rules of the game."""
        rows = np.unique(np.linspace(0, self.num_rows - 1, _SAMPLE).astype(int))
        _, judged = self._judge(rows)
        return np.array_equal(judged.scores.max(axis=1), self.table.scores[rows])


def solve_numbered(game: Game, *, max_states: int | None = None, progress: Progress = no_progress) -> NumberedSolution:
    """Finds all positions of a game that numbers them, and their values.

    It takes a byte a number while positions are found, and about 10 bytes an unfinished position from then on.

    Args:
      game: one of results 1, 0 and -1 at the end alone, in which no position comes back.
      max_states: positions to give up at; None for no limit.
      progress: told how far it is.

    Raises:
      ValueError: more than `max_states` positions, one that comes back within a game, games of more than `MAX_PLIES`
        plies, other rewards, or values that depend on more than the position.
    """
    start = jax.jit(game.init)(jax.random.key(0))
    check_solvable(game, start)
    if game.max_plies > MAX_PLIES:
        raise InputError(f"{game.name}: games have up to {game.max_plies} plies, and at most {MAX_PLIES} can be solved")
    plies_by_number = _explore(game, int(jax.jit(game.position_number)(start)), max_states, progress)
    terminal = int(np.count_nonzero(plies_by_number == _FINISHED))
    unfinished = plies_by_number < _FINISHED
    plies = plies_by_number[unfinished]
    reached = np.packbits(np.pad(unfinished, (0, -len(unfinished) % _WORD)), bitorder="little").view(np.uint32)
    del plies_by_number, unfinished
    table = make_table(reached, np.zeros(len(plies), np.int8))
    solution = NumberedSolution(game, table, plies, terminal)
    _backward_induction(solution, progress)
    return solution


def make_table(reached: np.ndarray, scores: np.ndarray) -> Scores:
    """The table of these fields of `Scores`."""
    counts = np.bitwise_count(reached)
    return Scores(reached, np.cumsum(counts, dtype=np.uint32) - counts, scores)


def _explore(game: Game, start: int, max_states: int | None, progress: Progress) -> np.ndarray:
    """uint8 [position numbers]: the latest ply of each unfinished position, `_FINISHED` or `_UNREACHED`."""
    plies = np.full(game.num_position_numbers, _UNREACHED, np.uint8)
    plies[start] = 0
    for ply in itertools.count():
        layer = np.flatnonzero(plies == ply).astype(np.uint32)
        if not layer.size:
            return plies
        if ply >= game.max_plies:
            raise repeats(game)

        def mark(numbers: np.ndarray) -> None:
            moves = _moves(game, _unpack(game, _padded(game, numbers)))
            if _has_odd_rewards(moves):
                raise InputError(f"{game.name} has rewards before the end, or other results than 1, 0 and -1")
            valid, ends, children = (np.asarray(x)[: len(numbers)] for x in (moves.valid, moves.ends, moves.numbers))
            plies[children[valid & ends]] = _FINISHED
            plies[children[valid & ~ends]] = ply + 1

        for _ in _in_parallel(game, mark, layer):
            pass
        found = int(np.count_nonzero(plies != _UNREACHED))
        progress(f"finding positions, ply {ply + 1}", found, None)
        if max_states is not None and found > max_states:
            raise too_many(game, max_states, found)
    raise AssertionError


def _backward_induction(solution: NumberedSolution, progress: Progress) -> None:
    """Fills in the scores, from the last ply to the first."""
    game, table, done = solution.game, solution.table, 0
    for ply in reversed(range(solution.num_plies)):
        # A copy: what the device reads must not change under it.
        later = jax.tree.map(jnp.array, table)

        def score(rows: np.ndarray) -> int:
            moves = _moves(game, _unpack(game, _padded(game, solution.numbers[rows])))
            table.scores[rows] = np.asarray(_best_score(later, moves))[: len(rows)]
            return len(rows)

        for size in _in_parallel(game, score, solution.unfinished(ply)):
            done += size
            progress(f"finding values, ply {ply}", done, solution.num_unfinished)


def _in_parallel(game: Game, work: Callable[[np.ndarray], Any], items: np.ndarray) -> Iterator[Any]:
    """Yields the results of `work` on pieces of an array, one piece a core at a time."""
    size = _batch_size(game)
    executor = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from executor.map(work, (items[start : start + size] for start in range(0, len(items), size)))
    finally:
        executor.shutdown(cancel_futures=True)


def _batch_size(game: Game) -> int:
    return max(1, BLOCK_CHILDREN // game.max_legal_actions)


def _padded(game: Game, numbers: np.ndarray) -> np.ndarray:
    """The numbers with the last one repeated, up to one of two lengths, so that two compilations serve."""
    full = _batch_size(game)
    size = full if len(numbers) > full // _SMALL else max(1, full // _SMALL)
    return np.pad(numbers, (0, size - len(numbers)), mode="edge")


# Three calls in a row, not one: XLA would unpack a number again for every slot, and play a move for every result.


@functools.partial(jax.jit, static_argnums=0)
def _unpack(game: Game, numbers: chex.Array) -> Any:
    return jax.vmap(game.from_position_number)(numbers)


_moves = jax.jit(_Moves.of, static_argnums=0)


@jax.jit
def _has_odd_rewards(moves: _Moves) -> chex.Array:
    """bool []: a reward is not what a result can be."""
    return jnp.any(moves.valid & (moves.rewards != jnp.where(moves.ends, jnp.sign(moves.rewards), 0.0)))


@jax.jit
def _best_score(table: Scores, moves: _Moves) -> chex.Array:
    """int8 [B]."""
    return jnp.max(table.judge(moves).scores, axis=1)


@jax.jit
def _judge(table: Scores, moves: _Moves) -> _Judged:
    return table.judge(moves)


@functools.partial(jax.jit, static_argnums=0)
def _find(game: Game, table: Scores, states: Any) -> chex.Array:
    return table.find(jax.vmap(game.position_number)(states))
