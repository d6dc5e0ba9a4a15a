"""Edges of games with few actions: all edges of a node are made with it. Axis letters: see `tree.py`, `R` `edges.py`.

Lane k of a node is its slot k, with a child or without. Methods: see `Edges`.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PyTree

from azjax.core.arrays import put, read, write_rows
from azjax.core.pytree import pytree_dataclass
from azjax.core.xla import materialize
from azjax.search.edges import (
    NO_CHILD,
    FlatPrior,
    Index,
    Node,
    NodePriors,
    Untried,
    allocate,
    best_lane,
    highest_lane,
    lanes_of,
    legal_softmax,
    renumbered_children,
    take_rows,
    untried_features,
    untried_upper,
)
from azjax.search.selection import Features, Fold, Selection

_C = TypeVar("_C")


class DenseEdge(NamedTuple):
    """An edge that is about to get its child."""

    slot: Int32[Array, "B"]
    prior: Float32[Array, "B"]
    edge: Int32[Array, "B"]


@pytree_dataclass
class DenseEdges:
    """Arrays [N, B, K], or flat. In holes the first feature is -inf and `upper` is -1."""

    child: Int32[Array, "N B K"] | Int32[Array, "NBK"]
    features: Features
    upper: Float32[Array, "N B K"] | Float32[Array, "NBK"] | None

    @classmethod
    def create(cls, selection: Selection, prior: Float32[Array, "B K"], num_nodes: int, solver: bool) -> "DenseEdges":
        """The edges of roots with `prior`."""
        child = jnp.full((num_nodes, *prior.shape), NO_CHILD, jnp.int32)
        features = tuple(allocate(num_nodes, row) for row in untried_features(selection, prior))
        return cls(child, features, allocate(num_nodes, untried_upper(prior)) if solver else None)

    def best(
        self, selection: Selection, terms: PyTree, index: Index, num_slots: int, batch: int
    ) -> tuple[Index, Index]:
        del batch
        edge = best_lane(self.features, selection, terms, index * num_slots, index * num_slots, 1, num_slots)
        return edge, read(self.child, edge)

    def fold(self, selection: Selection, index: Index, num_slots: int, batch: int) -> Fold:
        del selection, batch

        def fold(function: Callable[[_C, Features], _C], start: _C) -> _C:
            result = function(start, lanes_of(self.features, index, num_slots))
            return materialize(result)

        return fold

    def new_edge(
        self,
        prior: FlatPrior,
        index: Int32[Array, "B"],
        edge: Int32[Array, "B"],
        num_slots: int,
        slot: Int32[Array, "B"] | None,
    ) -> DenseEdge:
        # An edge of `slot` is handed over as `edge` too: see `FirstStep`.
        del slot
        return DenseEdge(edge - index * num_slots, read(prior, edge), edge)

    def untried_without(self, new: DenseEdge) -> None:
        del new

    def priors(self, logits: Float32[Array, "K R"]) -> NodePriors:
        return NodePriors(legal_softmax(logits).T, None)

    def attach(
        self,
        prior: FlatPrior,
        new: DenseEdge,
        untried: Untried | None,
        index: Int32[Array, "B"],
        child: Int32[Array, "B"],
    ) -> tuple["DenseEdges", FlatPrior, Int32[Array, "B"]]:
        del untried
        edge = jnp.where(index < prior.size, new.edge, prior.size)
        return dataclasses.replace(self, child=put(self.child, edge, child)), prior, new.edge

    def write_nodes(
        self, selection: Selection, prior: FlatPrior, priors: NodePriors, node: Node, count: int
    ) -> tuple["DenseEdges", FlatPrior]:
        features = tuple(
            write_rows(flat, rows, node, count)
            for flat, rows in zip(self.features, untried_features(selection, priors.prior), strict=True)
        )
        upper = None if self.upper is None else write_rows(self.upper, untried_upper(priors.prior), node, count)
        return DenseEdges(self.child, features, upper), write_rows(prior, priors.prior, node, count)

    def upper_of(self, upper: FlatPrior, index: Index, num_slots: int, batch: int) -> Float32[Array, "R"]:
        del batch
        return highest_lane(upper, index * num_slots, num_slots)

    def with_root_prior(
        self,
        selection: Selection,
        prior: Float32[Array, "B K"],
        visits: Int32[Array, "B K"],
        q: Float32[Array, "B K"],
        slot: Int32[Array, "N B"],
        sums: Float32[Array, "N B 2"],
    ) -> tuple["DenseEdges", Float32[Array, "B K"]]:
        del slot, sums
        counts = visits.astype(jnp.float32)
        rows = zip(self.features, selection.features(q, prior, counts), untried_features(selection, prior), strict=True)
        features = [old.at[0].set(jnp.where(counts > 0, row, untried)) for old, row, untried in rows]
        # The first feature may hold a proven return in place of the mean: it stays.
        features[0] = features[0].at[0].set(jnp.where(counts > 0, self.features[0][0], features[0][0]))
        return dataclasses.replace(self, features=tuple(features)), prior

    def renumber(
        self, source: Int32[Array, "N B"], number: Int32[Array, "N B"], made: Bool[Array, "N B"]
    ) -> "DenseEdges":
        child, _ = renumbered_children(self.child, number)
        return DenseEdges(
            child=jnp.where(made[..., None], take_rows(child, source), NO_CHILD),
            features=tuple(take_rows(feature, source) for feature in self.features),
            upper=None if self.upper is None else take_rows(self.upper, source),
        )
