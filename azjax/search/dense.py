"""Edges of games with few actions: all edges of a node are made with it. Axis letters: see `tree.py`.

An edge is known by its place in `child`. Inside a simulation every array is one run of numbers, see `arrays.py`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp

from azjax.core.arrays import apart, put, read, write_rows
from azjax.core.pytree import pytree_dataclass
from azjax.search.lanes import (
    NO_CHILD,
    best_lane,
    highest_lane,
    lanes_of,
    legal_softmax,
    room,
    untried_features,
    untried_upper,
)
from azjax.search.selection import Fold, Selection


class TableEntry(NamedTuple):
    """A lane that is to get its child.

    slot: int32 [B].
    prior: float32 [B]; of the slot.
    edge: int32 [B].
    """

    slot: chex.Array
    prior: chex.Array
    edge: chex.Array


@pytree_dataclass
class Table:
    """Lane k of a node is its slot k, with a child or without.

    child: int32 [N, B, K]; the node that the edge leads to, negative where nothing follows it, or `NO_CHILD`.
    features: F times float32 [N, B, K]; what the rule of selection needs to score the edge; see
      `Selection.features`. The first is -inf in holes.
    upper: float32 [N, B, K]; what the return of the edge is proven not to exceed, -1 in holes; None without a solver.
    """

    child: chex.Array
    features: tuple[chex.Array, ...]
    upper: chex.Array | None

    @classmethod
    def create(cls, selection: Selection, prior: chex.Array, num_nodes: int, solver: bool) -> "Table":
        """The edges of roots with `prior` [B, K]."""
        child = jnp.full((num_nodes, *prior.shape), NO_CHILD, jnp.int32)
        features = tuple(room(num_nodes, row) for row in untried_features(selection, prior))
        return cls(child, features, room(num_nodes, untried_upper(prior)) if solver else None)

    def with_root_prior(self, selection: Selection, prior: chex.Array, visits: chex.Array, q: chex.Array) -> "Table":
        """These edges, [N, B, K], with `prior` at the roots, whose slots have `visits` and mean returns `q`, [B, K]."""
        rows = zip(self.features, selection.features(q, prior, visits), untried_features(selection, prior), strict=True)
        features = [run.at[0].set(jnp.where(visits > 0, row, untried)) for run, row, untried in rows]
        # What stands for a mean return may be proven: it stays.
        features[0] = features[0].at[0].set(jnp.where(visits > 0, self.features[0][0], features[0][0]))
        return dataclasses.replace(self, features=tuple(features))

    def best(
        self, selection: Selection, terms: Any, place: chex.Array, lanes: int, batch: int, node: chex.Array
    ) -> tuple[chex.Array, chex.Array]:
        """The best edge of the nodes at places [R], int32 [R], and its child or `NO_CHILD`, int32 [R]."""
        del batch
        edge = best_lane(self.features, selection, terms, place * lanes, place * lanes, 1, lanes, node)
        return edge, read(self.child, edge)

    def fold(self, selection: Selection, place: chex.Array, lanes: int, batch: int, node: chex.Array) -> Fold:
        """Over the edges of the nodes at `place` [B]."""
        del selection, batch

        def fold(function: Callable, start: Any) -> Any:
            return apart(lambda carry: carry, function(start, lanes_of(self.features, place, lanes)), node)

        return fold

    def new_edge(
        self, prior: chex.Array, place: chex.Array, edge: chex.Array, num_slots: int, slot: chex.Array | None
    ) -> TableEntry:
        """`slot` [B], where it is not negative, is the slot; otherwise selection found the edge."""
        del slot
        return TableEntry(edge - place * num_slots, read(prior, edge), edge)

    def rest(self, new: TableEntry) -> tuple:
        """What `attach` needs of the other slots of the nodes; computed behind a branch."""
        del new
        return ()

    def judge(self, logits: chex.Array) -> tuple:
        """What `fill` needs of new nodes' logits [K, R], their prior [R, K] first; computed behind a branch."""
        return (legal_softmax(logits).T,)

    def attach(
        self, prior: chex.Array, new: TableEntry, rest: tuple, at: chex.Array, child: chex.Array
    ) -> tuple["Table", chex.Array, chex.Array]:
        """Leads the edges `new` [B] of the nodes at places [B] to `child` [B]; nothing where `at` is beyond the last.

        Returns:
          the edges; `prior`; the places of the new edges, int32 [B].
        """
        del rest
        edge = jnp.where(at < prior.size, new.edge, prior.size)
        return dataclasses.replace(self, child=put(self.child, edge, child)), prior, new.edge

    def fill(
        self, selection: Selection, prior: chex.Array, judged: tuple, node: chex.Array, count: int
    ) -> tuple["Table", chex.Array]:
        """The edges and `prior`, with those of `count` new nodes, from number `node` on, in all trees."""
        (new_prior,) = judged
        features = tuple(
            write_rows(run, rows, node, count)
            for run, rows in zip(self.features, untried_features(selection, new_prior), strict=True)
        )
        upper = None if self.upper is None else write_rows(self.upper, untried_upper(new_prior), node, count)
        return Table(self.child, features, upper), write_rows(prior, new_prior, node, count)

    def upper_of(self, upper: chex.Array, place: chex.Array, lanes: int, batch: int) -> chex.Array:
        """float32 [R]: what no edge of the nodes at places [R] exceeds; `upper` are those of the edges."""
        del batch
        return highest_lane(upper, place * lanes, lanes)
