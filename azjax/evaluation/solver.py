"""Exact solving: every reachable position, then backward induction.

Games that number their positions go to `numbered`. The others are solved here, by a hash of the position, and must be
small enough to hold with all their moves.

Axis letters: `B` batch, `S` reachable positions, `K` slots of the compact table of legal actions, `L` plies, `n`
positions of a ply, `D` digits of a count.
"""

import dataclasses
import functools
import itertools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.evaluation.numbered import solve_numbered
from azjax.evaluation.positions import (
    HOLE,
    Expansion,
    Layer,
    TooManyError,
    batches,
    expand_layer,
    first_layer,
    flatten,
    join,
    keys,
    pack,
    unpack,
    unpacked_batches,
)
from azjax.evaluation.solution import (
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
from azjax.games.protocols import RepetitionGame, is_numbered

MAX_STATES = 10_000_000
_DIGIT_BITS = 20
_BATCH = 1024


@pytree_dataclass
class Lookup:
    """Finds the row of a position inside jitted code. The keys stand in ascending order.

    Attributes:
      high: uint32 [S]; upper half of each key.
      low: uint32 [S]; lower half.
      rows: int32 [S]; the row in the solution.
    """

    high: chex.Array
    low: chex.Array
    rows: chex.Array

    def find(self, states: Any) -> chex.Array:
        """int32 [B]: the row of each state, `UNREACHABLE` where there is none.

        A position out of reach passes for a reachable one with odds of S / 2^64.
        """
        sorted_high, sorted_low, rows = jnp.asarray(self.high), jnp.asarray(self.low), jnp.asarray(self.rows)
        high, low = keys(pack(states))
        size = len(rows)
        steps = size.bit_length()

        def descend(step: chex.Array, place: chex.Array) -> chex.Array:
            last = place + (1 << (steps - 1 - step)) - 1
            at = jnp.minimum(last, size - 1)
            smaller = (sorted_high[at] < high) | ((sorted_high[at] == high) & (sorted_low[at] < low))
            return jnp.where((last < size) & smaller, last + 1, place)

        # Number of keys that are smaller.
        place = jax.lax.fori_loop(0, steps, descend, jnp.zeros(high.shape, jnp.int32))
        at = jnp.minimum(place, size - 1)
        found = (sorted_high[at] == high) & (sorted_low[at] == low)
        return jnp.where(found, rows[at], UNREACHABLE)


@pytree_dataclass
class _BestMoves:
    """What the optimal player reads (`BestMoves`).

    Attributes:
      lookup: finds rows.
      actions: int32 [S, K]; 0 in holes.
      best: bool [S, K].
      values: float32 [S].
    """

    lookup: Lookup
    actions: chex.Array
    best: chex.Array
    values: chex.Array

    def best_moves(self, game: Game, states: Any) -> tuple[chex.Array, chex.Array, chex.Array, chex.Array]:
        """See `BestMoves`."""
        rows = self.lookup.find(states)
        return rows != UNREACHABLE, self.values[rows], self.actions[rows], self.best[rows]


@dataclasses.dataclass(frozen=True, eq=False)
class GraphSolution(Solution):
    """A solution with all moves: every reachable position has a row, by ply and the start first.

    Attributes:
      game: the game.
      states: the positions; NumPy leaves [S, ...].
      actions: int32 [S, K]; the legal actions, `HOLE` in holes.
      children: int32 [S, K]; row of the position after each action, `HOLE` in holes.
      rewards: float32 [S, K]; the mover's reward of each action, 0 in holes.
      layer_starts: int32 [L + 1]; the positions of ply p are rows `layer_starts[p]:layer_starts[p + 1]`.
      values: float32 [S]; what the side to move gets with best play, 0 after the end.
      action_values: float32 [S, K]; what the mover gets by each action and best play after it, -inf in holes.
      lookup: finds positions on the device.
    """

    game: Game
    states: Any
    actions: np.ndarray
    children: np.ndarray
    rewards: np.ndarray
    layer_starts: np.ndarray
    values: np.ndarray
    action_values: np.ndarray
    lookup: Lookup

    @property
    def num_states(self) -> int:
        return len(self.values)

    @property
    def num_rows(self) -> int:
        return self.num_states

    @property
    def num_plies(self) -> int:
        return len(self.layer_starts) - 1

    @property
    def num_unfinished(self) -> int:
        return int(np.count_nonzero(~self.terminated))

    @property
    def terminated(self) -> np.ndarray:
        """bool [S]."""
        return self.states.terminated

    @property
    def current_player(self) -> np.ndarray:
        """int32 [S]."""
        return self.states.current_player

    @property
    def layers(self) -> list[slice]:
        """The rows of each ply."""
        starts = self.layer_starts.tolist()
        return [slice(*ends) for ends in itertools.pairwise(starts)]

    @functools.cached_property
    def optimal_mask(self) -> np.ndarray:
        """bool [S, K]: the actions that keep the value of the position; all False after the end."""
        return (self.children >= 0) & (self.action_values == self.values[:, None])

    def unfinished(self, ply: int) -> np.ndarray:
        rows = np.arange(self.num_rows)[self.layers[ply]]
        return rows[~self.terminated[rows]]

    def block(self, rows: np.ndarray) -> Block:
        children = self.children[rows]
        return Block(
            rows=rows,
            states=jax.tree.map(lambda leaf: leaf[rows], self.states),
            actions=self.actions[rows],
            children=np.where((children >= 0) & ~self.terminated[children], children, HOLE),
            rewards=self.rewards[rows],
            values=self.values[rows],
            action_values=self.action_values[rows],
        )

    def best_moves(self) -> _BestMoves:
        table = _BestMoves(self.lookup, self.actions.clip(0), self.optimal_mask, self.values)
        return jax.tree.map(jnp.asarray, table)

    def check_results(self) -> None:
        before_the_end = (self.children >= 0) & ~self.terminated[self.children] & (self.rewards != 0)
        if before_the_end.any():
            raise InputError(f"{self.game.name} has rewards before the end, so that wins and draws cannot be counted")

    def index(self, states: Any) -> np.ndarray:
        rows = np.concatenate([_find(self.lookup, chunk)[:size] for size, chunk in batches(states, _BATCH)])
        if np.any(rows == UNREACHABLE):
            first = int(np.argmax(rows == UNREACHABLE))
            raise InputError(f"{self.game.name}: state {first} of {len(rows)} is not reachable from the start")
        return rows

    def summary(self) -> Summary:
        self.check_results()
        running = self.values[~self.terminated]
        games = self._count_games()
        reachable, terminal = self._count_up_to_symmetry()
        return Summary(
            reachable=self.num_states,
            terminal=int(self.terminated.sum()),
            won=int(np.count_nonzero(running > 0)),
            drawn=int(np.count_nonzero(running == 0)),
            lost=int(np.count_nonzero(running < 0)),
            reachable_up_to_symmetry=reachable,
            terminal_up_to_symmetry=terminal,
            value_first_player=float(self.values[0]),
            best_first_actions=tuple(sorted(self.actions[0][self.optimal_mask[0]].tolist())),
            longest_game=len(self.layers) - 1,
            games=sum(games),
            games_first_wins=games[0],
            games_second_wins=games[1],
            games_drawn=games[2],
        )

    def _count_games(self) -> tuple[int, int, int]:
        """Sequences of moves that player 0 wins, that player 1 wins, and draws."""
        rows, ways, counts = np.zeros(1, int), np.ones((1, 1), np.int64), np.zeros(3, object)
        while len(rows):
            children = self.children[rows]
            first_player = np.where(self.current_player[rows, None] == 0, 1, -1) * self.rewards[rows]
            ends = (children >= 0) & self.terminated[children]
            for result, mask in enumerate((first_player > 0, first_player < 0, first_player == 0)):
                counts[result] += _total(ways, (ends & mask).sum(axis=1))
            rows = np.unique(children[children >= 0])
            within = np.where(children >= 0, np.searchsorted(rows, children), HOLE)
            ways = _pass_on(ways, within, len(rows))
        return counts[0], counts[1], counts[2]

    def _count_up_to_symmetry(self) -> tuple[int, int]:
        """Positions, and terminal ones, of which no two are images of each other."""
        smallest = np.concatenate(
            [join(*_image_keys(self.game, chunk))[:size].min(axis=1) for size, chunk in batches(self.states, _BATCH)]
        )
        return len(np.unique(smallest)), len(np.unique(smallest[self.terminated]))


def solve(game: Game, *, max_states: int | None = MAX_STATES, progress: Progress = no_progress) -> Solution:
    """Finds all positions of a game and their values.

    The value of a position is the most, over its actions, of the mover's reward plus the value of the next
    position, negated where the other player moves there.

    Args:
      game: one in which no position comes back within a game.
      max_states: positions to give up at; None for no limit.
      progress: told after each ply how far it is, and more often in large games.

    Raises:
      ValueError: more than `max_states` positions, one that comes back within a game, or values that depend on more
        than the position. See `solve_numbered` for what a game that numbers its positions must hold besides.
    """
    if is_numbered(game):
        return solve_numbered(game, max_states=max_states, progress=progress)
    check_solvable(game, game.init(jax.random.key(0)))
    layers, expansions, kept = _explore(game, max_states, progress)
    keys_by_row = np.concatenate([layer.keys[still] for layer, still in zip(layers, kept, strict=True)])
    order = np.argsort(keys_by_row)

    def rows_of(keys: np.ndarray) -> np.ndarray:
        return order[np.searchsorted(keys_by_row, keys, sorter=order)]

    # Nothing follows the last layer: all its slots are holes, for which any row will do.
    following_rows = [*(rows_of(layer.keys) for layer in layers[1:]), np.zeros(1, int)]
    parts = [
        np.where(expansion.children >= 0, rows[expansion.children], HOLE)[still]
        for expansion, rows, still in zip(expansions, following_rows, kept, strict=True)
    ]
    states = unpack(game, np.concatenate([layer.words[still] for layer, still in zip(layers, kept, strict=True)]))
    actions, rewards = (
        np.concatenate([getattr(expansion, field)[still] for expansion, still in zip(expansions, kept, strict=True)])
        for field in ("actions", "rewards")
    )
    children = np.concatenate(parts).astype(np.int32)
    layer_starts = np.cumsum([0, *[int(still.sum()) for still in kept]]).astype(np.int32)
    values, action_values = _backward_induction(states, children, rewards, layer_starts)
    return GraphSolution(
        game=game,
        states=states,
        actions=actions,
        children=children,
        rewards=rewards,
        layer_starts=layer_starts,
        values=values,
        action_values=action_values,
        lookup=_make_lookup(keys_by_row),
    )


def perft(game: Game, depth: int) -> list[int]:
    """The numbers of sequences of 1, 2, ... `depth` legal actions from the start; a finished game is not extended.

    Raises:
      ValueError: negative depth.
    """
    if depth < 0:
        raise InputError(f"depth must not be negative, got {depth}")
    game = game.with_max_plies(max(depth, 1)) if isinstance(game, RepetitionGame) and depth < game.max_plies else game
    layer, ways = first_layer(game), np.ones((1, 1), np.int64)
    counts: list[int] = []
    for ply in range(depth):
        if layer.size == 0:
            return counts + [0] * (depth - ply)
        legal = [np.asarray(_count_legal(game, states))[:size] for size, states in unpacked_batches(game, layer.words)]
        counts.append(_total(ways, np.concatenate(legal)))
        if ply + 1 < depth:
            expansion, layer = expand_layer(game, layer)
            ways = _pass_on(ways, expansion.children, layer.size)
    return counts


def _explore(
    game: Game, max_states: int | None, progress: Progress
) -> tuple[list[Layer], list[Expansion], list[np.ndarray]]:
    """The positions of each ply and where they lead; and of each ply, bool, those that no later one holds too."""
    expansions: list[Expansion] = []
    layers = [first_layer(game)]
    kept: list[np.ndarray] = []
    found = 0
    while layers[-1].size:
        if len(expansions) > game.max_plies:
            raise repeats(game)
        found += layers[-1].size
        progress(f"finding positions, ply {len(expansions)}", found, None)
        room = None if max_states is None else max_states - found
        try:
            expansion, following = expand_layer(game, layers[-1], room)
        except TooManyError as error:
            raise too_many(game, max_states, found + error.count) from None
        kept.append(np.ones(layers[-1].size, bool))
        expansions.append(expansion)
        for earlier, still in zip(layers, kept, strict=True):
            again = np.isin(earlier.keys, following.keys, assume_unique=True)
            found -= int((still & again).sum())
            still &= ~again
        layers.append(following)
    return layers[:-1], expansions, kept


def _backward_induction(
    states: Any, children: np.ndarray, rewards: np.ndarray, layer_starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """float32 [S] values and [S, K] action values."""
    values = np.zeros(len(children), np.float32)
    action_values = np.full(children.shape, -np.inf, np.float32)
    player = states.current_player
    for ply in reversed(range(len(layer_starts) - 1)):
        layer = slice(layer_starts[ply], layer_starts[ply + 1])
        following = children[layer]
        sign = np.where(player[following] == player[layer, None], 1, -1)
        future = rewards[layer] + sign * values[following]
        # Adding 0 makes a zero of either sign the positive one.
        action_values[layer] = np.where(following >= 0, future + 0.0, -np.inf)
        values[layer] = np.where(states.terminated[layer], 0, action_values[layer].max(axis=1))
    return values, action_values


# Sequences are counted without overflow: int64 [n, D], D digits of `_DIGIT_BITS` bits, lowest first.


def _pass_on(ways: np.ndarray, children: np.ndarray, size: int) -> np.ndarray:
    """Ways to `size` positions from the ways to their parents; children int32 [n, K] are places, or `HOLE`."""
    parents, slots = np.nonzero(children >= 0)
    sums = np.zeros((size, ways.shape[1] + 1), np.int64)
    for digit in range(ways.shape[1]):
        np.add.at(sums[:, digit], children[parents, slots], ways[parents, digit])
        # The carry is small: fewer than 2^42 edges lead to one position.
        sums[:, digit + 1] += sums[:, digit] >> _DIGIT_BITS
        sums[:, digit] &= (1 << _DIGIT_BITS) - 1
    return sums if sums[:, -1].any() else sums[:, :-1]


def _total(ways: np.ndarray, times: np.ndarray) -> int:
    """Sum of ways [n, D] taken `times` [n] over."""
    return sum(int(digit @ times.astype(np.int64)) << (_DIGIT_BITS * place) for place, digit in enumerate(ways.T))


@functools.partial(jax.jit, static_argnums=0)
def _count_legal(game: Game, states: Any) -> chex.Array:
    _, valid = jax.vmap(game.legal_slots)(states)
    return jnp.sum(valid, axis=1, dtype=jnp.int32)


@functools.partial(jax.jit, static_argnums=0)
def _image_keys(game: Game, states: Any) -> tuple[chex.Array, chex.Array]:
    """The key halves, uint32 [B, images], of all symmetric images of B positions."""
    images, permutation = jax.vmap(game.symmetries)(states)
    high, low = keys(pack(flatten(images)))
    return high.reshape(permutation.shape[:2]), low.reshape(permutation.shape[:2])


_find = jax.jit(Lookup.find)


def _make_lookup(keys: np.ndarray) -> Lookup:
    order = np.argsort(keys)
    keys = keys[order]
    return Lookup((keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), order.astype(np.int32))
