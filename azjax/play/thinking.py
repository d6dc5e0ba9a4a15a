"""Searches of people's positions: those of several people run side by side, a little at a time.

Each search has a seat in one batch of trees, which get their simulations at the same time; one that comes later begins
in the middle of the others. One thread does it; those who ask are told.
"""

import dataclasses
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.render.tree_text import NodeView, made_nodes
from azjax.search import Evaluator, SearchResult, Tree, alphazero_policy
from azjax.search.reuse import compact
from azjax.search.tree import ROOT, VISITS

SEATS = 8
MAX_SIMULATIONS = 4096  # of one search
_CHUNK = 16  # simulations between two looks at who asks
_SECONDS_BETWEEN_THOUGHTS = 0.1
_SECONDS_BETWEEN_TREES = 1.0
_SHOWN_NODES = 256


@dataclasses.dataclass(frozen=True)
class Thought:
    """What a search has found so far; values are seen by the player to move.

    Attributes:
      num_simulations: so far.
      action: the move that it would play.
      policy: float [A]; shares of the visits.
      value: what it expects, -1..1.
      proven: whether that is the true value.
      nodes: of its tree, the most visited ones, see `azjax.render.tree_text.made_nodes`; about once a second and at the end,
        None at other times.
      is_last: whether the search ended with it.
    """

    num_simulations: int
    action: int
    policy: np.ndarray
    value: float
    proven: bool
    nodes: dict[int, NodeView] | None
    is_last: bool


class Search:
    """A search that was asked for: a position, how far to go, and whom to tell."""

    def __init__(self, state: Any, num_simulations: int, seconds: float, tell: Callable[[Thought], None]) -> None:
        self.state, self.limit, self.seconds, self.tell = state, num_simulations, seconds, tell
        self.done, self.began, self.told, self.showed = 0, 0.0, 0.0, 0.0
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.cancelled.set()


class Thinker:
    """Thinks of up to `SEATS` positions of a game at once, and of more in turn.

    Args:
      game: the game.
      evaluator: see `azjax.search.evaluators`.
      params: what the evaluator reads.
      c_puct: weight of exploration.
      max_simulations: the most that may be asked for.
    """

    def __init__(
        self,
        game: Game,
        evaluator: Evaluator,
        params: Any = None,
        *,
        c_puct: float = 1.25,
        max_simulations: int = MAX_SIMULATIONS,
    ) -> None:
        self.game, self.max_simulations = game, max_simulations
        self._params = params
        policy = functools.partial(
            alphazero_policy,
            game=game,
            evaluator=evaluator,
            num_simulations=_CHUNK,
            c_puct=c_puct,
            solver=True,
            # So much that after `compact` there is room for all that may still come.
            max_nodes=2 * (max_simulations + _CHUNK),
        )
        self._begin = jax.jit(policy)

        def go_on(params: Any, key: jax.Array, states: Any, tree: Tree, new: jax.Array) -> SearchResult:
            # Who sits down begins anew, also where somebody had looked at the same position before.
            return policy(params, key, states, tree=_emptied(tree, new))

        # Donated: trees are large, and nobody keeps an earlier one.
        self._go_on = jax.jit(go_on, donate_argnums=3)
        self._changed = threading.Condition()
        self._waiting: list[Search] = []
        self._closed = False
        self._trees: dict[int, Tree] = {}
        self._idle = jax.tree.map(np.asarray, game.init(jax.random.key(0)))
        self._preparing = threading.Thread(target=self._prepare, args=(SEATS,), name="preparing", daemon=True)
        self._thread = threading.Thread(target=self._work, name="thinker", daemon=True)

    def start(self) -> None:
        """Compiles what one search needs, and begins to listen; what many need is compiled meanwhile."""
        self._prepare(1)
        self._preparing.start()
        self._thread.start()

    def _prepare(self, seats: int) -> None:
        tree = compact(self._run(jax.random.key(0), [None] * seats).tree)
        # Going on is another program.
        tree = self._run(jax.random.key(0), [None] * seats, tree).tree
        made_nodes(tree, 0, _SHOWN_NODES)
        with self._changed:
            self._trees[seats] = tree

    def close(self) -> None:
        """Ends all searches and the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._preparing.join()
        self._thread.join()

    def search(
        self, state: Any, tell: Callable[[Thought], None], *, num_simulations: int, seconds: float = float("inf")
    ) -> Search:
        """Asks for a search; `tell` is called from the thinking thread, several times a second and at the end.

        Args:
          state: NumPy leaves [...]; not an end.
          tell: is handed a `Thought`.
          num_simulations: in all; rounded up to whole chunks, at most `max_simulations`.
          seconds: after which the search ends too, counted from when it gets a seat.

        Raises:
          ValueError: a number out of range.
        """
        if not 1 <= num_simulations <= self.max_simulations:
            raise InputError(f"num_simulations must be 1..{self.max_simulations:,}, got {num_simulations}")
        if not seconds > 0:
            raise InputError(f"seconds must be above 0, got {seconds}")
        asked = Search(state, num_simulations, seconds, tell)
        with self._changed:
            self._waiting.append(asked)
            self._changed.notify()
        return asked

    def _work(self) -> None:
        seats: list[Search | None] = [None]
        count = 0
        while True:
            with self._changed:
                while not self._closed and not self._waiting and not any(seats):
                    self._changed.wait()
                if self._closed:
                    return
                seats = self._seated(seats)
            count += 1
            result = self._run(jax.random.fold_in(jax.random.key(1), count), seats, self._trees[len(seats)])
            found = jax.device_get((result.action, result.policy, result.value, result.bounds))
            self._trees[len(seats)] = result.tree
            for row, search in enumerate(seats):
                if search is not None and self._tell(search, row, found, self._trees[len(seats)]):
                    seats[row] = None

    def _seated(self, seats: list[Search | None]) -> list[Search | None]:
        """Who thinks next: those who did and still want to, then those who wait longest."""
        going = [search for search in seats if search is not None and not search.cancelled.is_set()]
        self._waiting = [search for search in self._waiting if not search.cancelled.is_set()]
        wanted = SEATS if len(going) + len(self._waiting) > 1 and SEATS in self._trees else 1
        if wanted != len(seats):
            if going:  # at most one, or there would be many before and after
                row = seats.index(going[0])
                self._trees[wanted] = _reseated(self._trees[len(seats)], row, self._trees[wanted])
            seats = [*going, *[None] * wanted][:wanted]
        seats = [search if search in going else None for search in seats]
        for row, search in enumerate(seats):
            if search is None and self._waiting:
                seats[row] = newcomer = self._waiting.pop(0)
                newcomer.began = time.perf_counter()
        return seats

    def _run(self, key: jax.Array, seats: list[Search | None], tree: Tree | None = None) -> SearchResult:
        """A chunk of simulations in every seat."""
        rows = [self._idle if search is None else search.state for search in seats]
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        if tree is None:
            return jax.block_until_ready(self._begin(self._params, key, states))
        if int(tree.num_made) + _CHUNK > tree.max_nodes:
            tree = compact(tree)
        new = np.array([search is None or search.done == 0 for search in seats])
        return jax.block_until_ready(self._go_on(self._params, key, states, tree, new))

    def _tell(self, search: Search, row: int, found: tuple, tree: Tree) -> bool:
        """Whether the search has ended; tells those who asked for it, not too often."""
        now = time.perf_counter()
        search.done += _CHUNK
        action, policy, value, bounds = (part[row] for part in found)
        proven = bool(bounds[0] == bounds[1])
        is_last = proven or search.done >= search.limit or now - search.began >= search.seconds
        if is_last or now - search.told >= _SECONDS_BETWEEN_THOUGHTS:
            search.told, nodes = now, None
            if is_last or now - search.showed >= _SECONDS_BETWEEN_TREES:
                search.showed, nodes = now, made_nodes(tree, row, _SHOWN_NODES)
            search.tell(Thought(search.done, int(action), policy, float(value), proven, nodes, is_last))
        return is_last


@jax.jit
def _reseated(tree: Tree, row: int, other: Tree) -> Tree:
    """The trees of the shape of `other` with the tree of a row in the first seat, and nothing in the others."""

    def put(into: jax.Array, out_of: jax.Array) -> jax.Array:
        before = (slice(None),) * min(into.ndim - 1, 1)  # a count of blocks has no nodes
        return into.at[(*before, 0)].set(out_of[(*before, row)])

    trees = _emptied(other, jnp.ones(other.batch, bool)), dataclasses.replace(tree, batch=other.batch)
    put_in = jax.tree.map(put, *(dataclasses.replace(each, histories=None, num_made=None) for each in trees))
    # The histories are those of the next call.
    return dataclasses.replace(put_in, histories=other.histories, num_made=tree.num_made)


@jax.jit
def _emptied(tree: Tree, rows: jax.Array) -> Tree:
    """The trees with nothing in the rows of bool [B], which then begin anew."""
    sums = jnp.where(rows[None, :, None], 0.0, tree.sums)
    num_made = jnp.where(jnp.all(sums[ROOT, :, VISITS] == 0), 1, tree.num_made)
    return dataclasses.replace(tree, sums=sums, num_made=num_made)
