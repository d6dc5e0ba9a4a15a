"""Proof-number search: the value of one position, where the game is too large to be solved.

A node's proof number is how many leaves at least have to be won for the goal so that it is proven, its disproof number
the same for the other side (Allis, van der Meulen and van den Herik 1994, "Proof-number search"). The search expands
the leaf that both numbers lead to, here several of them at once: a leaf that waits counts as far from both.

Nodes are positions at a depth, so that what several orders of moves reach is searched once, and a position that moves
bring back is another node: no proof goes round in circles. What is decided holds at every depth. Games whose positions
come back are searched to 8 plies, then to 16, and so on, since a search of this kind likes to follow a forced line for
ever. Positions are compared by a 64-bit hash; in a search of n positions two different ones share one with odds of
n^2 / 2^65.

Axis letters: `B` batch, `K` slots of the compact table of legal actions, `W` words of a packed state.
"""

import functools
import heapq
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Int64, UInt32

from azjax.core.errors import InputError
from azjax.evaluation.positions import flatten, join, keys, pack, unpack
from azjax.evaluation.solution import BestMoves, Progress, no_progress
from azjax.games.arguments import check_states
from azjax.games.endings import EndingsGame
from azjax.games.game import AnyGame, State
from azjax.games.protocols import RepetitionGame, without_history

MAX_POSITIONS = 10_000_000
_NEVER = 1 << 40  # the number of what cannot be proven or disproven
_WAITS = 1 << 30  # of a leaf that is to be expanded
_LEAVES = 64
_DEPTH_BITS = 16
_LEAST_CAPACITY = 1 << 12


class Proof(NamedTuple):
    """The value of a position.

    Attributes:
      value: with best play, for the side to move; None if it was not found.
      at_least, at_most: bounds of it that were found.
      best_action: keeps the value; None where that is a loss, which every action keeps, or was not found.
      positions: that were looked at.
      seconds: that it took.
    """

    value: float | None
    at_least: float
    at_most: float
    best_action: int | None
    positions: int
    seconds: float


def prove(
    game: AnyGame,
    state: State,
    *,
    max_positions: int = MAX_POSITIONS,
    table: BestMoves | None = None,
    progress: Progress = no_progress,
) -> Proof:
    """Finds the value of a position by proof-number search.

    It takes about 300 bytes for each position.

    Args:
      game: results are 1, 0 and -1, at the end of a game.
      state: an unfinished position. Earlier positions of its game play no part. It is far from the limit of plies.
      max_positions: gives up after this many.
      table: exact values of some positions.
      progress: called with the goal, the positions looked at, and their limit.

    Raises:
      InputError: a finished position, or see `check_states`.
    """
    check_states(game, state, batched=False)
    if bool(state.terminated):
        raise InputError(f"{game.name}: the game is over in this position, so that there is nothing to prove")
    began = time.perf_counter()
    expander = _Expander(game, state, table)
    low, high, action, positions = -1.0, 1.0, None, 0
    for goal, name in ((1.0, "a win"), (0.0, "a draw or more")):
        if positions >= max_positions:
            break
        decided: dict[int, bool] = {}
        depths = _depths(game)
        while True:
            graph = _Graph(expander, goal, decided, depths.pop(0), max_positions - positions)

            def report(done: int, task: str = f"proving {name}", before: int = positions) -> None:
                progress(task, before + done, max_positions)

            graph.search(report)
            positions += graph.size
            if graph.is_decided or graph.is_full or positions >= max_positions or not depths:
                break
        if graph.proof[0] == 0:
            low, action = goal, graph.proving_action()
            break
        if graph.disproof[0] != 0:
            break
        # Without draws, what is not won is lost.
        high = -1.0 if goal == 0 or not expander.has_draws else 0.0
        if high == -1:
            break
    value = low if low == high else None
    return Proof(value, low, high, action, positions, time.perf_counter() - began)


def _depths(game: AnyGame) -> list[int]:
    """The plies to which the searches go, one after the other."""
    if not isinstance(game, RepetitionGame | EndingsGame):
        return [game.max_plies]
    # Below the limit of plies, where the value of a position depends on more than the position.
    return [1 << power for power in range(3, (game.max_plies - 1).bit_length())] or [game.max_plies]


class _Children(NamedTuple):
    """Where the moves of B positions lead.

    Attributes:
      actions: the moves.
      valid: no hole.
      words: the positions, packed.
      keys: of the positions, in two halves.
      known: the value is known.
      values: for the player of the root, where it is known.
      own: the player of the root is to move.
      odd: a reward before the end, or one that is no result.
    """

    actions: Int32[Array | np.ndarray, "B K"]
    valid: Bool[Array | np.ndarray, "B K"]
    words: UInt32[Array | np.ndarray, "B K W"]
    keys: UInt32[Array | np.ndarray, "B K 2"]
    known: Bool[Array | np.ndarray, "B K"]
    values: Float32[Array | np.ndarray, "B K"]
    own: Bool[Array | np.ndarray, "B K"]
    odd: Bool[Array | np.ndarray, "B K"]


class _Expander:
    """Plays all moves of some packed positions."""

    def __init__(self, game: AnyGame, state: State, table: BestMoves | None) -> None:
        self._game, self._table, self._root = game, table, int(state.current_player)
        start = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], without_history(game, state))
        self._like = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], start))
        self.start: UInt32[np.ndarray, W] = np.asarray(pack(start))[0]
        self.has_draws = False

    def __call__(self, words: UInt32[np.ndarray, "B W"]) -> _Children:
        padded = np.pad(words, ((0, _LEAVES - len(words)), (0, 0)), mode="edge")
        states = unpack(self._game, padded, self._like)
        found = _children(self._game, self._root, self._table, states)
        children = _Children(*(np.asarray(leaf)[: len(words)] for leaf in found))
        if children.odd.any():
            raise InputError(f"{self._game.name} has rewards before the end, or other results than 1, 0 and -1")
        self.has_draws = self.has_draws or bool((children.valid & children.known & (children.values == 0)).any())
        return children


@functools.partial(jax.jit, static_argnums=(0, 1))
def _children(game: AnyGame, root: int, table: BestMoves | None, states: State) -> _Children:
    actions, valid = jax.vmap(game.legal_slots)(states)
    children = flatten(jax.vmap(jax.vmap(game.step, (None, 0)))(states, actions))
    values, own = children.rewards[:, root], children.current_player == root
    known, odd = children.terminated, values != jnp.where(children.terminated, jnp.sign(values), 0.0)
    if table is not None:
        in_table, exact, _, _ = table.best_moves(game, children)
        values = jnp.where(known, values, jnp.where(own, exact, -exact))
        known |= in_table
    words = pack(children)
    key = jax.vmap(game.position_key)(children) if isinstance(game, RepetitionGame) else jnp.stack(keys(words), axis=1)
    words, key, known, values, own, odd = (
        leaf.reshape(*valid.shape, *leaf.shape[1:]) for leaf in (words, key, known, values, own, odd)
    )
    return _Children(actions, valid, words, key, known, values, own, odd & valid)


class _Graph:
    """A search for one goal: that the player of the root gets so much.

    Args:
      expander: of positions.
      goal: the value to prove.
      decided: whether positions reach the goal, by key; the search adds to it.
      max_depth: positions so deep are not expanded.
      limit: of the number of positions.

    Attributes:
      size: its positions; the root is number 0, and arrays have room for more.
      is_full: the next leaf has more moves than the limit has room for positions.
      proof, disproof: numbers of each position.
    """

    def __init__(self, expander: _Expander, goal: float, decided: dict[int, bool], max_depth: int, limit: int) -> None:
        self._expander, self._goal, self._limit = expander, goal, limit
        self._decided, self._max_depth = decided, max_depth
        self.size, self._num_moves, self.is_full = 1, 0, False
        self._index: dict[int, int] = {}  # by key and depth in one integer, which takes less memory than a pair
        self.proof, self.disproof = (np.ones(_LEAST_CAPACITY, np.int64) for _ in range(2))
        self._words = np.zeros((_LEAST_CAPACITY, len(expander.start)), np.uint32)
        self._words[0] = expander.start
        self._keys = np.zeros(_LEAST_CAPACITY, np.uint64)
        self._own, self._depth = np.ones(_LEAST_CAPACITY, bool), np.zeros(_LEAST_CAPACITY, np.int32)
        # The moves of a position follow one another; those that lead to it are a list linked by `_next_into`.
        self._first, self._into = (np.full(_LEAST_CAPACITY, -1, np.int64) for _ in range(2))
        self._count = np.zeros(_LEAST_CAPACITY, np.int32)
        self._actions, self._targets, self._sources = (np.zeros(_LEAST_CAPACITY, np.int32) for _ in range(3))
        self._next_into = np.zeros(_LEAST_CAPACITY, np.int64)

    @property
    def is_decided(self) -> bool:
        """Whether the goal is proven or disproven."""
        return 0 in (self.proof[0], self.disproof[0])

    def search(self, report: Callable[[int], None]) -> None:
        """Expands leaves until the goal is decided, there is no room, or no leaf is left that matters."""
        while not (self.is_decided or self.is_full):
            leaves = self._select()
            if not leaves:
                return
            self._update(self._expand(leaves))
            report(self.size)

    def proving_action(self) -> int:
        """A move from the root that reaches the goal, which is proven."""
        proven = int(np.flatnonzero(self.proof[self._targets_of(0)] == 0)[0])
        return int(self._actions[self._first[0] + proven])

    def _select(self) -> list[int]:
        """The leaves to expand next, which wait from now on."""
        leaves: list[int] = []
        while len(leaves) < _LEAVES and min(self.proof[0], self.disproof[0]) < _WAITS:
            node = 0
            while self._first[node] >= 0:
                # One of the moves from a position that can be decided leads to another that can.
                targets = self._targets_of(node)
                near, far = self.proof[targets], self.disproof[targets]
                if not self._own[node]:
                    near, far = far, near
                closed = (near == 0) | (far == 0) | ((near >= _WAITS) & (far >= _WAITS))
                node = int(targets[np.lexsort((far, near, closed))[0]])
            self.proof[node] = self.disproof[node] = _WAITS
            leaves.append(node)
            self._update(self._sources_of(node))
        return leaves

    def _targets_of(self, node: int) -> Int32[np.ndarray, "moves"]:
        """Where its moves lead."""
        return self._targets[self._first[node] : self._first[node] + self._count[node]]

    def _sources_of(self, node: int) -> list[int]:
        """The positions from which moves lead to it."""
        sources, move = [], int(self._into[node])
        while move >= 0:
            sources.append(int(self._sources[move]))
            move = int(self._next_into[move])
        return sources

    def _update(self, nodes: list[int]) -> None:
        """Computes the numbers of these positions again, and of those before them, the deepest first."""
        queue = [(-int(self._depth[node]), node) for node in set(nodes)]
        heapq.heapify(queue)
        queued = set(nodes)
        while queue:
            _, node = heapq.heappop(queue)
            queued.discard(node)
            if 0 in (self.proof[node], self.disproof[node]):
                continue
            targets = self._targets_of(node)
            proof, disproof = self.proof[targets], self.disproof[targets]
            own = self._own[node]
            numbers = (int(proof.min()), _total(disproof)) if own else (_total(proof), int(disproof.min()))
            if numbers == (self.proof[node], self.disproof[node]):
                continue
            self.proof[node], self.disproof[node] = numbers
            if 0 in numbers:
                self._decided[int(self._keys[node])] = numbers[0] == 0
            for source in self._sources_of(node):
                if source not in queued:
                    queued.add(source)
                    heapq.heappush(queue, (-int(self._depth[source]), source))

    def _expand(self, leaves: list[int]) -> list[int]:
        """Adds the positions after these; returns the leaves for which there was room. Others are never expanded."""
        children = self._expander(self._words[leaves])
        all_keys = join(children.keys[..., 0], children.keys[..., 1])
        reached = children.values >= self._goal
        for row, leaf in enumerate(leaves):
            slots, depth = np.flatnonzero(children.valid[row]), int(self._depth[leaf]) + 1
            if self.size + len(slots) > self._limit:
                self.is_full = True
                return leaves[:row]
            self._make_room(len(slots))
            moves = slice(self._num_moves, self._num_moves + len(slots))
            targets: list[int] = []
            new: list[int] = []
            for slot, key in zip(slots.tolist(), all_keys[row, slots].tolist(), strict=True):
                target = self._index.setdefault(key << _DEPTH_BITS | depth, self.size + len(new))
                if target == self.size + len(new):
                    new.append(slot)
                targets.append(target)
            added = slice(self.size, self.size + len(new))
            known, is_reached = children.known[row, new], reached[row, new]
            self._words[added], self._own[added] = children.words[row, new], children.own[row, new]
            self._depth[added], self._keys[added] = depth, all_keys[row, new]
            for index in range(len(new)):
                decided = self._decided.get(int(all_keys[row, new[index]]))
                if decided is not None:
                    known[index], is_reached[index] = True, decided
            unknown = 1 if depth < self._max_depth else _NEVER
            self.proof[added] = np.where(known, np.where(is_reached, 0, _NEVER), unknown)
            self.disproof[added] = np.where(known, np.where(is_reached, _NEVER, 0), unknown)
            self._first[leaf], self._count[leaf] = self._num_moves, len(slots)
            self._actions[moves] = children.actions[row, slots]
            self._targets[moves], self._sources[moves] = targets, leaf
            for move, target in enumerate(targets, start=self._num_moves):
                self._next_into[move] = self._into[target]
                self._into[target] = move
            self.size, self._num_moves = added.stop, moves.stop
        return leaves

    def _make_room(self, count: int) -> None:
        """For this many more positions and moves."""
        for names, used in (
            ("proof disproof _words _keys _own _depth _first _into _count", self.size),
            ("_actions _targets _sources _next_into", self._num_moves),
        ):
            for name in names.split():
                array = getattr(self, name)
                if used + count > len(array):
                    larger = np.zeros((2 * len(array) + count, *array.shape[1:]), array.dtype)
                    larger[: len(array)] = array
                    if name in ("_first", "_into"):
                        larger[len(array) :] = -1
                    setattr(self, name, larger)


def _total(numbers: Int64[np.ndarray, "moves"]) -> int:
    """The sum; as large as the number of a leaf that waits only if one of them is.

    It doubles from ply to ply where many orders of moves lead to one position.
    """
    total = int(numbers.sum())
    if total < _WAITS:
        return total
    return min(total, _NEVER) if numbers.max() >= _WAITS else _WAITS - 1
