"""Exact solving of games that number their positions: hundreds of millions of numbers, a byte or two each.

Positions are found ply by ply in a table with a byte per number. Then only the unfinished ones are kept, by rank: row r
is the r-th number of an unfinished position. Where actions lead is computed again whenever it is needed, in batches, so
that no table by slot is stored. Axis letters: `B` batch, `R` rows, `K` slots of the compact table of legal actions, `W`
words of 32 numbers.

A score combines value and distance, as chess engines score mates: a win in d plies is 127 - d, a loss in d plies
-(127 - d), a draw 0, for the side to move. The action of the highest score is the best: it wins as soon and loses as
late as possible.
"""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int8, Int32, UInt8, UInt32

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.evaluation.host_games import only_start
from azjax.evaluation.positions import HOLE
from azjax.evaluation.solution import (
    BLOCK_CHILDREN,
    UNREACHABLE,
    BestActions,
    Block,
    Progress,
    Solution,
    Summary,
    check_rows,
    check_solvable,
    in_parallel,
    no_progress,
    repeats,
    too_many,
)
from azjax.games.arguments import check_states
from azjax.games.game import AnyGame, State, reward_of_mover
from azjax.games.protocols import NumberedGame

MAX_PLIES = 126
_WIN = 127  # score of a win in 0 plies
_LOWEST = -128  # below every score
_FINISHED, _UNREACHED = 254, 255  # in the table of plies by number
_WORD = 32
_SMALL = 16  # batches of at most this part of a full one are padded less
_SAMPLE = 1024


class _Moves(NamedTuple):
    """All moves of B positions by slot; the values in holes have no meaning.

    Attributes:
      actions: the actions.
      valid: no hole.
      numbers: of the position after the move.
      ends: the move ends the game.
      rewards: of the mover.
      same_player: the mover is to move again.
    """

    actions: Int32[Array, "B K"]
    valid: Bool[Array, "B K"]
    numbers: UInt32[Array, "B K"]
    ends: Bool[Array, "B K"]
    rewards: Float32[Array, "B K"]
    same_player: Bool[Array, "B K"]


class _ScoredMoves(NamedTuple):
    """By slot: actions, children and rewards as in `Block`, and scores, `_LOWEST` in holes."""

    actions: Int32[Array | np.ndarray, "B K"]
    children: Int32[Array | np.ndarray, "B K"]
    rewards: Float32[Array | np.ndarray, "B K"]
    scores: Int8[Array | np.ndarray, "B K"]


@pytree_dataclass
class Scores:
    """The scores of unfinished positions by rank, on the host or on the device.

    Attributes:
      reached: bit b of word w says whether number 32 w + b has a row.
      before: the rows of lower words.
      scores: by row.
    """

    reached: UInt32[Array | np.ndarray, "W"]
    before: UInt32[Array | np.ndarray, "W"]
    scores: Int8[Array | np.ndarray, "R"]

    @classmethod
    def of(cls, reached: UInt32[np.ndarray, "W"], scores: Int8[np.ndarray, "R"]) -> "Scores":
        counts = np.bitwise_count(reached)
        before = np.cumsum(counts, dtype=np.uint32)
        before -= counts
        return cls(reached, before, scores)

    def numbers(self, rows: Int[np.ndarray, "B"]) -> UInt32[np.ndarray, "B"]:
        """The numbers of these rows, on the host: `find` backward."""
        # With rows of another type all of `before` would be converted.
        at = np.searchsorted(self.before, rows.astype(np.uint32), side="right") - 1
        words, nth = np.asarray(self.reached)[at], rows.astype(np.uint32) - np.asarray(self.before)[at]
        bits = np.zeros(len(rows), np.uint32)
        for width in (np.uint32(16), np.uint32(8), np.uint32(4), np.uint32(2), np.uint32(1)):
            lower = np.bitwise_count(words & ((np.uint32(1) << width) - np.uint32(1)))
            higher = nth >= lower
            nth, words, bits = nth - lower * higher, words >> width * higher, bits + width * higher
        return at.astype(np.uint32) * np.uint32(_WORD) + bits

    def find(self, numbers: UInt32[Array, "..."]) -> Int32[Array, "..."]:
        """The row of each number, `UNREACHABLE` where there is none."""
        at, bit = numbers >> jnp.uint32(5), numbers & jnp.uint32(31)
        word = jnp.asarray(self.reached)[at]
        below = word & ((jnp.uint32(1) << bit) - jnp.uint32(1))
        rows = jnp.asarray(self.before)[at] + jax.lax.population_count(below)
        return jnp.where(word >> bit & jnp.uint32(1) == 1, rows.astype(jnp.int32), UNREACHABLE)

    def score(self, moves: _Moves) -> _ScoredMoves:
        """The scores of the moves of B unfinished positions."""
        rows = self.find(moves.numbers)
        later = jnp.asarray(self.scores).at[rows].get(mode="clip")
        later = later - jnp.sign(later)  # one ply farther away
        later = jnp.where(moves.same_player, later, -later)
        scores = jnp.where(moves.ends, moves.rewards.astype(jnp.int8) * jnp.int8(_WIN - 1), later)
        return _ScoredMoves(
            actions=jnp.where(moves.valid, moves.actions, HOLE),
            children=jnp.where(moves.valid & ~moves.ends, rows, HOLE),
            rewards=jnp.where(moves.valid, moves.rewards, 0.0),
            scores=jnp.where(moves.valid, scores, jnp.int8(_LOWEST)),
        )

    def best_moves(self, game: AnyGame, states: State) -> BestActions:
        """See `BestMoves`."""
        scored = self.score(_moves(game, states))
        known = states.terminated | (_find(game, self, states) != UNREACHABLE)
        legal = scored.actions != HOLE
        values = jnp.sign(jnp.max(scored.scores, axis=1))
        best = legal & (jnp.sign(scored.scores) == values[:, None])
        values = jnp.where(states.terminated, 0, values).astype(jnp.float32)
        return known, values, jnp.where(legal, scored.actions, 0), best


@dataclasses.dataclass(frozen=True, eq=False)
class NumberedSolution(Solution):
    """A solution by position number; only unfinished positions have rows.

    Attributes:
      game: a `NumberedGame`.
      table: the scores; NumPy leaves.
      plies: of each position, the latest at which it can occur.
      terminal: reachable positions that are the end.
    """

    game: AnyGame
    table: Scores
    plies: UInt8[np.ndarray, "R"]
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
    def values(self) -> Int8[np.ndarray, "R"]:
        """The result for the side to move with best play."""
        return np.sign(self.table.scores)

    @functools.cached_property
    def _on_device(self) -> Scores:
        scores: Scores = jax.tree.map(jnp.asarray, self.table)
        return scores

    def distances(self, rows: Int[np.ndarray, "B"]) -> Int[np.ndarray, "B"]:
        """Plies to the end when the winner hurries and the loser delays; 0 for draws."""
        scores = self.table.scores[rows].astype(int)
        return np.where(scores == 0, 0, _WIN - abs(scores))

    def unfinished(self, ply: int) -> Int[np.ndarray, "B"]:
        return np.flatnonzero(self.plies == ply)

    def block(self, rows: Int[np.ndarray, "B"]) -> Block:
        states, scored = self._score(rows)
        return Block(
            rows=rows,
            states=states,
            actions=np.asarray(scored.actions),
            children=np.asarray(scored.children),
            rewards=np.asarray(scored.rewards),
            values=np.sign(self.table.scores[rows]).astype(np.float32),
            action_values=np.where(scored.scores == _LOWEST, -np.inf, np.sign(scored.scores)).astype(np.float32),
        )

    def _score(self, rows: Int[np.ndarray, "B"]) -> tuple[State, _ScoredMoves]:
        """The states of these rows and their `_ScoredMoves`; NumPy leaves."""
        states = _unpack(self.game, _padded(self.game, self.table.numbers(rows)))
        scored = _score(self._on_device, _jitted_moves(self.game, states))
        cut: tuple[State, _ScoredMoves] = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(rows)], (states, scored))
        return cut

    def index(self, states: State) -> Int32[np.ndarray, "B"]:
        """The row of each unfinished state of a batch.

        Raises:
          InputError: a state that is finished, or cannot be reached from the start, or see `check_states`.
        """
        check_states(self.game, states, batched=True)
        terminated = np.asarray(states.terminated)
        rows = np.where(terminated, UNREACHABLE, _find(self.game, self._on_device, states))
        check_rows(self.game, rows, lambda row: "finished" if terminated[row] else "not reachable from the start")
        return rows

    def best_moves(self) -> Scores:
        return self._on_device

    def check_results(self) -> None:
        """Does nothing: solving has checked the rewards."""

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
        _, scored = self._score(rows)
        return np.array_equal(scored.scores.max(axis=1), self.table.scores[rows])


def solve_numbered(
    game: AnyGame, *, max_states: int | None = None, progress: Progress = no_progress
) -> NumberedSolution:
    """Finds all positions of a game that numbers them, and their values.

    It takes a byte per number while positions are found, and about 10 bytes per unfinished position from then on.

    Args:
      game: a `NumberedGame` with results 1, 0 and -1 at the end alone, in which no position comes back.
      max_states: limit of the number of positions; None for no limit.
      progress: see `Progress`.

    Raises:
      InputError: more than `max_states` positions, one that comes back within a game, games of more than `MAX_PLIES`
        plies, other rewards, values that depend on more than the position, or a game that draws its start.
    """
    start = only_start(game)
    check_solvable(game, start)
    if game.max_plies > MAX_PLIES:
        raise InputError(f"{game.name}: games have up to {game.max_plies} plies, and at most {MAX_PLIES} can be solved")
    plies_by_number = _explore(game, start, max_states, progress)
    terminal = int(np.count_nonzero(plies_by_number == _FINISHED))
    unfinished = plies_by_number < _FINISHED
    plies = plies_by_number[unfinished]
    reached = np.packbits(np.pad(unfinished, (0, -len(unfinished) % _WORD)), bitorder="little").view(np.uint32)
    del plies_by_number, unfinished
    solution = NumberedSolution(game, Scores.of(reached, np.zeros(len(plies), np.int8)), plies, terminal)
    _backward_induction(solution, progress)
    return solution


def numbering(game: AnyGame) -> NumberedGame[Any]:
    """The game as one that numbers its positions.

    Raises:
      InputError: it does not number them.
    """
    if not isinstance(game, NumberedGame):
        raise InputError(f"{game.name} does not number its positions")
    if not game.num_position_numbers:
        raise InputError(f"{game.name} has too many positions on this board for numbers of 32 bits")
    return game


def _explore(game: AnyGame, start: State, max_states: int | None, progress: Progress) -> UInt8[np.ndarray, "numbers"]:
    """By position number: the latest ply of an unfinished position, `_FINISHED` or `_UNREACHED`."""
    plies = np.full(numbering(game).num_position_numbers, _UNREACHED, np.uint8)
    plies[int(jax.jit(numbering(game).position_number)(start))] = 0
    for ply in itertools.count():
        layer = np.flatnonzero(plies == ply).astype(np.uint32)
        if not layer.size:
            break
        if ply >= game.max_plies:
            raise repeats(game)

        def mark(numbers: np.ndarray, ply: int = ply) -> None:
            moves = _jitted_moves(game, _unpack(game, _padded(game, numbers)))
            if _has_odd_rewards(moves):
                raise InputError(f"{game.name} has rewards before the end, or other results than 1, 0 and -1")
            valid, ends, children = (np.asarray(x)[: len(numbers)] for x in (moves.valid, moves.ends, moves.numbers))
            plies[children[valid & ends]] = _FINISHED
            plies[children[valid & ~ends]] = ply + 1

        for _ in in_parallel(mark, layer, _piece(game)):
            pass
        found = int(np.count_nonzero(plies != _UNREACHED))
        progress(f"finding positions, ply {ply + 1}", found, None)
        if max_states is not None and found > max_states:
            raise too_many(game, max_states, found)
    return plies


def _backward_induction(solution: NumberedSolution, progress: Progress) -> None:
    """Fills in the scores, from the last ply to the first."""
    game, scores, done = solution.game, np.asarray(solution.table.scores), 0
    for ply in reversed(range(solution.num_plies)):
        # A copy: what the device reads must not change under it.
        later = jax.tree.map(jnp.array, solution.table)

        def score(rows: np.ndarray, later: Scores = later) -> int:
            moves = _jitted_moves(game, _unpack(game, _padded(game, solution.table.numbers(rows))))
            scores[rows] = np.asarray(_best_score(later, moves))[: len(rows)]
            return len(rows)

        for size in in_parallel(score, solution.unfinished(ply), _piece(game)):
            done += size
            progress(f"finding values, ply {ply}", done, solution.num_unfinished)


def _piece(game: AnyGame) -> int:
    """Positions that are looked at in one call, at most."""
    return max(1, BLOCK_CHILDREN // game.max_legal_actions)


def _padded(game: AnyGame, numbers: UInt32[np.ndarray, "n"]) -> UInt32[np.ndarray, "B"]:
    """The numbers with the last one repeated, up to one of two lengths, so that two compilations serve."""
    full = _piece(game)
    size = full if len(numbers) > full // _SMALL else max(1, full // _SMALL)
    return np.pad(numbers, (0, size - len(numbers)), mode="edge")


# Three calls in a row, not one: XLA would unpack a number again for every slot, and play a move for every result.


@functools.partial(jax.jit, static_argnums=0)
def _unpack(game: AnyGame, numbers: UInt32[Array, "B"]) -> State:
    states: State = jax.vmap(numbering(game).from_position_number)(numbers)
    return states


def _moves(game: AnyGame, states: State) -> _Moves:
    actions, valid = jax.vmap(game.legal_slots)(states)
    children = jax.vmap(jax.vmap(game.step, (None, 0)))(states, actions)
    return _Moves(
        actions=actions,
        valid=valid,
        numbers=jax.vmap(jax.vmap(numbering(game).position_number))(children),
        ends=children.terminated,
        rewards=reward_of_mover(states, children),
        same_player=children.current_player == states.current_player[:, None],
    )


_jitted_moves = jax.jit(_moves, static_argnums=0)


@jax.jit
def _has_odd_rewards(moves: _Moves) -> Bool[Array, ""]:
    """Whether a reward is not that of a result."""
    return jnp.any(moves.valid & (moves.rewards != jnp.where(moves.ends, jnp.sign(moves.rewards), 0.0)))


@jax.jit
def _best_score(table: Scores, moves: _Moves) -> Int8[Array, "B"]:
    return jnp.max(table.score(moves).scores, axis=1)


_score = jax.jit(Scores.score)


@functools.partial(jax.jit, static_argnums=0)
def _find(game: AnyGame, table: Scores, states: State) -> Int32[Array, "B"]:
    return table.find(jax.vmap(numbering(game).position_number)(states))
