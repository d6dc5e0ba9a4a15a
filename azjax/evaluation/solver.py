"""Exact solving: every reachable position, then backward induction.

Games that number their positions are solved by `numbered.py`. The others are solved here, by a hash of the position,
and must be small enough to be stored with all their moves. Axis letters: `B` batch, `R` rows, which are all reachable
positions, `K` slots of the compact table of legal actions.
"""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int32, UInt32, UInt64

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.evaluation.host_games import only_start
from azjax.evaluation.move_counts import total_ways, ways_to_children
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
)
from azjax.evaluation.solution import (
    UNREACHABLE,
    BestActions,
    Block,
    Progress,
    Solution,
    Summary,
    check_rows,
    check_solvable,
    no_progress,
    repeats,
    too_many,
)
from azjax.games.arguments import check_is_game, check_states
from azjax.games.game import AnyGame, State
from azjax.games.protocols import is_numbered

MAX_STATES = 10_000_000
_BATCH = 1024


@pytree_dataclass
class Lookup:
    """Finds the row of a position inside jitted code. The keys are in ascending order.

    Attributes:
      high: upper half of each key.
      low: lower half.
      rows: the row in the solution.
    """

    high: UInt32[Array | np.ndarray, "R"]
    low: UInt32[Array | np.ndarray, "R"]
    rows: Int32[Array | np.ndarray, "R"]

    @classmethod
    def of(cls, keys: UInt64[np.ndarray, "R"]) -> "Lookup":
        """The lookup of the positions with these keys, by row."""
        order = np.argsort(keys)
        ordered = keys[order]
        return cls((ordered >> np.uint64(32)).astype(np.uint32), ordered.astype(np.uint32), order.astype(np.int32))

    def find(self, states: State) -> Int32[Array, "B"]:
        """The row of each state, `UNREACHABLE` where there is none.

        An unreachable position passes for a reachable one with odds of R / 2^64.
        """
        sorted_high, sorted_low, rows = jnp.asarray(self.high), jnp.asarray(self.low), jnp.asarray(self.rows)
        high, low = keys(pack(states))
        size = len(rows)
        steps = size.bit_length()

        def descend(step: Int[Array, ""], index: Int32[Array, "B"]) -> Int32[Array, "B"]:
            last = index + (1 << (steps - 1 - step)) - 1
            at = jnp.minimum(last, size - 1)
            smaller = (sorted_high[at] < high) | ((sorted_high[at] == high) & (sorted_low[at] < low))
            return jnp.where((last < size) & smaller, last + 1, index)

        # The number of keys that are smaller.
        index = jax.lax.fori_loop(0, steps, descend, jnp.zeros(high.shape, jnp.int32))
        at = jnp.minimum(index, size - 1)
        found = (sorted_high[at] == high) & (sorted_low[at] == low)
        return jnp.where(found, rows[at], UNREACHABLE)


@pytree_dataclass
class _BestMoves:
    """The parameters of the optimal player (`BestMoves`).

    Attributes:
      lookup: finds rows.
      actions: 0 in holes.
      best: the actions that keep the value.
      values: for the side to move.
    """

    lookup: Lookup
    actions: Int32[Array | np.ndarray, "R K"]
    best: Bool[Array | np.ndarray, "R K"]
    values: Float32[Array | np.ndarray, "R"]

    def best_moves(self, game: AnyGame, states: State) -> BestActions:
        """See `BestMoves`."""
        rows = self.lookup.find(states)
        return rows != UNREACHABLE, self.values[rows], self.actions[rows], self.best[rows]


@dataclasses.dataclass(frozen=True, eq=False)
class GraphSolution(Solution):
    """A solution with all moves: every reachable position has a row, by ply and the start first.

    Attributes:
      game: the game.
      states: the positions; NumPy leaves [R, ...].
      actions: the legal actions, `HOLE` in holes.
      children: row of the position after each action, `HOLE` in holes.
      rewards: the mover's reward of each action, 0 in holes.
      layer_starts: the positions of ply p are rows `layer_starts[p]:layer_starts[p + 1]`.
      values: the result for the side to move with best play, 0 after the end.
      action_values: the mover's result by each action and best play after it, -inf in holes.
      lookup: finds positions on the device.
    """

    game: AnyGame
    states: State
    actions: Int32[np.ndarray, "R K"]
    children: Int32[np.ndarray, "R K"]
    rewards: Float32[np.ndarray, "R K"]
    layer_starts: Int32[np.ndarray, "plies_and_one"]
    values: Float32[np.ndarray, "R"]
    action_values: Float32[np.ndarray, "R K"]
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
    def terminated(self) -> Bool[np.ndarray, "R"]:
        return np.asarray(self.states.terminated)

    @property
    def current_player(self) -> Int32[np.ndarray, "R"]:
        return np.asarray(self.states.current_player)

    @property
    def layers(self) -> list[slice]:
        """The rows of each ply."""
        return [slice(*ends) for ends in itertools.pairwise(self.layer_starts.tolist())]

    @functools.cached_property
    def optimal_mask(self) -> Bool[np.ndarray, "R K"]:
        """The actions that keep the value of the position; all False after the end."""
        return np.asarray((self.children >= 0) & (self.action_values == self.values[:, None]))

    def unfinished(self, ply: int) -> Int[np.ndarray, "B"]:
        rows = np.arange(self.num_rows)[self.layers[ply]]
        return np.asarray(rows[~self.terminated[rows]])

    def block(self, rows: Int[np.ndarray, "B"]) -> Block:
        children = self.children[rows]
        return Block(
            rows=rows,
            states=jax.tree.map(lambda leaf: leaf[rows], self.states),
            actions=self.actions[rows],
            children=np.where((children >= 0) & ~self.terminated[children], children, np.int32(HOLE)),
            rewards=self.rewards[rows],
            values=self.values[rows],
            action_values=self.action_values[rows],
        )

    def best_moves(self) -> _BestMoves:
        table = _BestMoves(self.lookup, self.actions.clip(0), self.optimal_mask, self.values)
        on_device: _BestMoves = jax.tree.map(jnp.asarray, table)
        return on_device

    def check_results(self) -> None:
        before_the_end = (self.children >= 0) & ~self.terminated[self.children] & (self.rewards != 0)
        if before_the_end.any():
            raise InputError(f"{self.game.name} has rewards before the end, so that wins and draws cannot be counted")

    def index(self, states: State) -> Int32[np.ndarray, "B"]:
        check_states(self.game, states, batched=True)
        rows = np.concatenate([_find(self.lookup, batch)[:size] for size, batch in batches(states, _BATCH)])
        check_rows(self.game, rows, lambda row: "not reachable from the start")
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
        """The numbers of move sequences that player 0 wins, that player 1 wins, and that end in a draw."""
        rows, ways, counts = np.zeros(1, int), np.ones((1, 1), np.int64), np.zeros(3, object)
        while len(rows):
            children = self.children[rows]
            first_player = np.where(self.current_player[rows, None] == 0, 1, -1) * self.rewards[rows]
            ends = (children >= 0) & self.terminated[children]
            for result, mask in enumerate((first_player > 0, first_player < 0, first_player == 0)):
                counts[result] += total_ways(ways, (ends & mask).sum(axis=1))
            rows = np.unique(children[children >= 0])
            within = np.where(children >= 0, np.searchsorted(rows, children), HOLE)
            ways = ways_to_children(ways, within, len(rows))
        return counts[0], counts[1], counts[2]

    def _count_up_to_symmetry(self) -> tuple[int, int]:
        """The numbers of positions and of finished ones, images of each other counted once."""
        smallest = np.concatenate(
            [join(*_image_keys(self.game, chunk))[:size].min(axis=1) for size, chunk in batches(self.states, _BATCH)]
        )
        return len(np.unique(smallest)), len(np.unique(smallest[self.terminated]))


def solve(game: AnyGame, *, max_states: int | None = MAX_STATES, progress: Progress = no_progress) -> Solution:
    """Finds all positions of a game and their values.

    The value of a position is the maximum, over its actions, of the mover's reward plus the value of the next
    position, negated where the other player moves there.

    Args:
      game: a game in which no position comes back.
      max_states: limit of the number of positions; None for no limit.
      progress: called after each ply, and more often in large games.

    Raises:
      InputError: more than `max_states` positions, one that comes back within a game, values that depend on more than
        the position, or a game that draws its start. `solve_numbered` requires more of a game that numbers its
        positions.
    """
    check_is_game(game)
    if is_numbered(game):
        return solve_numbered(game, max_states=max_states, progress=progress)
    check_solvable(game, only_start(game))
    layers, expansions, kept = _explore(game, max_states, progress)
    keys_by_row = np.concatenate([layer.keys[still] for layer, still in zip(layers, kept, strict=True)])
    order = np.argsort(keys_by_row)

    def rows_of(keys: UInt64[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        return order[np.searchsorted(keys_by_row, keys, sorter=order)]

    # Nothing follows the last layer. All its slots are holes, for which any row will do.
    following_rows = [*(rows_of(layer.keys) for layer in layers[1:]), np.zeros(1, int)]
    parts = [
        np.where(expansion.children >= 0, rows[expansion.children], HOLE)[still]
        for expansion, rows, still in zip(expansions, following_rows, kept, strict=True)
    ]
    words = np.concatenate([layer.words[still] for layer, still in zip(layers, kept, strict=True)])
    states = jax.tree.map(np.asarray, unpack(game, words))
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
        lookup=Lookup.of(keys_by_row),
    )


def _explore(
    game: AnyGame, max_states: int | None, progress: Progress
) -> tuple[list[Layer], list[Expansion], list[Bool[np.ndarray, "..."]]]:
    """By ply: the positions, where they lead, and a mask of those that no later ply holds too."""
    expansions: list[Expansion] = []
    layers = [first_layer(game)]
    kept: list[np.ndarray] = []
    found = 0
    while layers[-1].size:
        if len(expansions) > game.max_plies:
            raise repeats(game)
        found += layers[-1].size
        expected = 0 if len(layers) < 2 else layers[-1].size ** 2 // layers[-2].size
        too_large = max_states is not None and found + expected > max_states
        hint = f" (about {expected:,} more follow: raise --max-states, now {max_states:,})" if too_large else ""
        progress(f"finding positions, ply {len(expansions)}{hint}", found, None)
        try:
            expansion, following = expand_layer(game, layers[-1], max_states)
        except TooManyError as error:
            raise too_many(game, max_states, error.count) from None
        kept.append(np.ones(layers[-1].size, bool))
        expansions.append(expansion)
        for earlier, still in zip(layers, kept, strict=True):
            again = np.isin(earlier.keys, following.keys, assume_unique=True)
            found -= int((still & again).sum())
            still &= ~again
        if max_states is not None and found + following.size > max_states:
            raise too_many(game, max_states, found + following.size)
        layers.append(following)
    return layers[:-1], expansions, kept


def _backward_induction(
    states: State,
    children: Int32[np.ndarray, "R K"],
    rewards: Float32[np.ndarray, "R K"],
    layer_starts: Int32[np.ndarray, "plies_and_one"],
) -> tuple[Float32[np.ndarray, "R"], Float32[np.ndarray, "R K"]]:
    """Values and action values."""
    values = np.zeros(len(children), np.float32)
    action_values = np.full(children.shape, -np.inf, np.float32)
    player = np.asarray(states.current_player)
    for ply in reversed(range(len(layer_starts) - 1)):
        layer = slice(layer_starts[ply], layer_starts[ply + 1])
        following = children[layer]
        sign = np.where(player[following] == player[layer, None], 1, -1)
        future = rewards[layer] + sign * values[following]
        # Adding 0 makes a zero of either sign the positive one.
        action_values[layer] = np.where(following >= 0, future + 0.0, -np.inf)
        values[layer] = np.where(states.terminated[layer], 0, action_values[layer].max(axis=1))
    return values, action_values


@functools.partial(jax.jit, static_argnums=0)
def _image_keys(game: AnyGame, states: State) -> tuple[UInt32[Array, "B images"], UInt32[Array, "B images"]]:
    """The halves of the keys of all symmetric images of B positions."""
    images, permutation = jax.vmap(game.symmetries)(states)
    high, low = keys(pack(flatten(images)))
    return high.reshape(permutation.shape[:2]), low.reshape(permutation.shape[:2])


_find = jax.jit(Lookup.find)
