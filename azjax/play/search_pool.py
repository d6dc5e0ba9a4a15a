"""Searches of several people, run side by side in one batch of trees.

Each search has a row of the batch. All rows get simulations at the same time, and a search may start while others run.
One thread runs them all, and reports to those who requested them.

Axis letters: `B` rows, `A` actions.
"""

import contextlib
import dataclasses
import functools
import math
import threading
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.games.game import State
from azjax.render.tree_nodes import NodeSummary, node_summaries
from azjax.search import SearchHyper, SearchPolicy, SearchResult, Tree
from azjax.search.reuse import compact, select_rows

CAPACITY = 8  # searches at the same time
MAX_SIMULATIONS = 4096  # of one search
_CHUNK = 16  # simulations between two looks at the waiting requests
_SECONDS_BETWEEN_UPDATES = 0.1
_SECONDS_BETWEEN_TREES = 1.0
_MAX_NODES = 256  # of a tree in an update


@dataclasses.dataclass(frozen=True)
class SearchUpdate:
    """The state of a search. Values are from the view of the player to move.

    Attributes:
      num_simulations: simulations so far.
      action: the best move.
      policy: shares of the visits.
      value: expected result, -1..1.
      is_proven: whether `value` is proven to be the true one.
      nodes: the root's children and the most visited nodes of the tree (see `azjax.render.tree_nodes.node_summaries`),
        about once a second and in the last update; None in others.
      is_last: whether the search has ended.
    """

    num_simulations: int
    action: int
    policy: Float32[np.ndarray, "A"]
    value: float
    is_proven: bool
    nodes: dict[int, NodeSummary] | None
    is_last: bool


@dataclasses.dataclass(eq=False)
class SearchRequest:
    """A search that was requested; see `SearchPool.search`. Times are those of `time.perf_counter`."""

    state: State
    num_simulations: int
    seconds: float
    report: Callable[[SearchUpdate | Exception], object]
    simulations_done: int = 0
    started_at: float = 0.0
    reported_at: float = 0.0
    tree_reported_at: float = 0.0  # time of the last update with nodes
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Ends the search without another update."""
        self.is_cancelled = True


class SearchPool:
    """Searches up to `CAPACITY` positions of a game at once; further requests wait.

    Args:
      policy: the search, with a solver in any case.
      params: of its evaluator.
      hyper: its numbers.
      max_simulations: upper limit of one search.
    """

    def __init__(
        self,
        policy: SearchPolicy,
        params: PyTree = None,
        hyper: SearchHyper | None = None,
        *,
        max_simulations: int = MAX_SIMULATIONS,
    ) -> None:
        self.game, self.max_simulations = policy.game, max_simulations
        self._params = params
        # After `compact` there is capacity for the rest of every search.
        capacity = 2 * (max_simulations + _CHUNK)
        policy = dataclasses.replace(policy, num_simulations=_CHUNK, solver=True, max_nodes=capacity)
        self._empty_tree = functools.partial(policy.empty_tree, params, hyper=hyper)

        def continue_search(params: PyTree, key: PRNGKeyArray, states: State, tree: Tree) -> SearchResult:
            result: SearchResult = policy(params, key, states, hyper=hyper, tree=tree)
            return result

        # Donated: trees are large, and an earlier one is never read again.
        self._continue = jax.jit(continue_search, donate_argnums=3)
        self._changed = threading.Condition()
        self._waiting: list[SearchRequest] = []
        self._is_closed = False
        self._failure: Exception | None = None
        self._trees: dict[int, Tree] = {}  # by the number of rows: 1 and `CAPACITY`
        self._idle: State = jax.tree.map(np.asarray, policy.game.init(jax.random.key(0)))
        self._compiler = threading.Thread(target=self._compile_several_rows, name="compiler", daemon=True)
        self._thread = threading.Thread(target=self._work, name="search pool", daemon=True)

    @property
    def is_compiled(self) -> bool:
        """Whether searches run. Until then they wait."""
        return 1 in self._trees

    def start(self) -> None:
        """Starts the thread. It compiles the search with one row; several rows are compiled while searches run."""
        self._thread.start()

    def close(self) -> None:
        """Ends all searches and the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        if self._compiler.is_alive():
            self._compiler.join()

    def check_limits(self, num_simulations: int, seconds: float) -> None:
        """Checks the limits of a search.

        Raises:
          InputError: a number out of range.
        """
        if not 1 <= num_simulations <= self.max_simulations:
            raise InputError(f"num_simulations must be 1..{self.max_simulations:,}, got {num_simulations}")
        if not seconds > 0:
            raise InputError(f"seconds must be above 0, got {seconds}")

    def search(
        self,
        state: State,
        report: Callable[[SearchUpdate | Exception], object],
        *,
        num_simulations: int,
        seconds: float = math.inf,
    ) -> SearchRequest:
        """Requests a search.

        Args:
          state: a position that is not final, with NumPy leaves.
          report: called with updates several times a second and at the end, from the thread of the pool; or once with
            the error that ended the pool, such as one of compiling or a lack of memory.
          num_simulations: simulations in all, at most `max_simulations`; rounded up to a multiple of 16.
          seconds: time limit, counted from when the search starts.

        Raises:
          InputError: a number out of range.
        """
        self.check_limits(num_simulations, seconds)
        request = SearchRequest(state, num_simulations, seconds, report)
        with self._changed:
            failure = self._failure
            if failure is None:
                self._waiting.append(request)
                self._changed.notify()
        if failure is not None:
            report(failure)
        return request

    def _compile(self, num_rows: int) -> None:
        rows: list[SearchRequest | None] = [None] * num_rows
        # A search continues an empty tree: starting one would be another program to compile.
        tree = self._empty_tree(self._batch(rows))
        tree = compact(_clear_rows(tree, np.ones(num_rows, bool)))
        tree = self._run(jax.random.key(0), rows, tree).tree
        node_summaries(tree, 0, _MAX_NODES)
        with self._changed:
            self._trees[num_rows] = tree.without_histories()

    def _compile_several_rows(self) -> None:
        # Without them searches take turns.
        with contextlib.suppress(Exception):
            self._compile(CAPACITY)

    def _work(self) -> None:
        rows: list[SearchRequest | None] = [None]
        count = 0
        try:
            self._compile(1)
            if not self._is_closed:
                self._compiler.start()
            while True:
                with self._changed:
                    while not self._is_closed and not self._waiting and not any(rows):
                        self._changed.wait()
                    if self._is_closed:
                        return
                    rows = self._assign_rows(rows)
                count += 1
                result = self._run(jax.random.fold_in(jax.random.key(1), count), rows, self._trees[len(rows)])
                self._trees[len(rows)] = result.tree.without_histories()
                rows = self._report(rows, result)
        except Exception as error:
            with self._changed:
                self._failure = error.with_traceback(None)  # which would keep the trees
                ended = [*filter(None, rows), *self._waiting]
            for request in ended:
                request.report(error)

    def _assign_rows(self, rows: list[SearchRequest | None]) -> list[SearchRequest | None]:
        """The requests of the next chunk: those that run and are still wanted, then those that wait longest."""
        running = [request for request in rows if request is not None and not request.is_cancelled]
        self._waiting = [request for request in self._waiting if not request.is_cancelled]
        num_rows = CAPACITY if len(running) + len(self._waiting) > 1 and CAPACITY in self._trees else 1
        if num_rows != len(rows):
            if running:  # exactly one: more of them would need all rows before and after
                row = rows.index(running[0])
                self._trees[num_rows] = _move_row(self._trees[len(rows)], row, self._trees[num_rows])
            rows = [*running, *[None] * num_rows][:num_rows]
        rows = [request if request in running else None for request in rows]
        for row, request in enumerate(rows):
            if request is None and self._waiting:
                rows[row] = started = self._waiting.pop(0)
                started.started_at = time.perf_counter()
        return rows

    def _run(self, key: PRNGKeyArray, rows: list[SearchRequest | None], tree: Tree) -> SearchResult:
        """A chunk of simulations in every row."""
        is_full = int(tree.num_made) + _CHUNK > tree.max_nodes
        if is_full or any(request is not None and request.simulations_done == 0 for request in rows):
            # A new search must not continue the row's last one. Unused rows must not fill the tree.
            tree = _clear_rows(tree, np.array([not request or not request.simulations_done for request in rows]))
        if int(tree.num_made) + _CHUNK > tree.max_nodes:
            tree = compact(tree)
        result: SearchResult = self._continue(self._params, key, self._batch(rows), tree)
        result.action.block_until_ready()
        return result

    def _batch(self, rows: list[SearchRequest | None]) -> State:
        """The positions of the rows."""
        states = [self._idle if request is None else request.state for request in rows]
        batch: State = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
        return batch

    def _report(self, rows: list[SearchRequest | None], result: SearchResult) -> list[SearchRequest | None]:
        """Sends the updates that are due, and returns the rows without the searches that have ended."""
        actions, policies, values, bounds = jax.device_get((result.action, result.policy, result.value, result.bounds))
        rows = list(rows)
        for row, request in enumerate(rows):
            if request is None:
                continue
            now = time.perf_counter()
            request.simulations_done += _CHUNK
            is_proven = bool(bounds[row, 0] == bounds[row, 1])
            is_last = is_proven or request.simulations_done >= request.num_simulations
            is_last |= now - request.started_at >= request.seconds
            if is_last or now - request.reported_at >= _SECONDS_BETWEEN_UPDATES:
                request.reported_at, nodes = now, None
                if is_last or now - request.tree_reported_at >= _SECONDS_BETWEEN_TREES:
                    request.tree_reported_at = now
                    nodes = node_summaries(self._trees[len(rows)], row, _MAX_NODES)
                action, value = int(actions[row]), float(values[row])
                done = request.simulations_done
                request.report(SearchUpdate(done, action, policies[row], value, is_proven, nodes, is_last))
            if is_last:
                rows[row] = None
        return rows


_clear_rows = jax.jit(Tree.without_nodes)


@jax.jit
def _move_row(tree: Tree, row: Int[Array, ""], other: Tree) -> Tree:
    """As many trees as `other` has: the first is that of a row of `tree`, the others are empty."""
    rows = jnp.arange(other.batch)
    moved = select_rows(tree, jnp.broadcast_to(row, other.batch))
    return moved.without_nodes(rows > 0)
