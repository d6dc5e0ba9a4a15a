"""Edges of games with many actions: an edge is made with its child. Axis letters: see `tree.py`, `R` `edges.py`.

Methods: see `Edges`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PyTree, Shaped

from azjax.core.arrays import put, read, tree_of, write_rows
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
    best_untried,
    highest_lane,
    lanes_of,
    legal_softmax,
    prior_mass,
    renumbered_children,
    take_rows,
)
from azjax.search.selection import Features, Fold, Selection

_C = TypeVar("_C")
_Blocks: TypeAlias = tuple[Int32[Array, "R"], Shaped[Array, "R"]]
"""A block of each of R nodes, 0 at the end of its list, and what was computed of the blocks before it."""

LANES = 8
"""L: eight numbers of 32 bits are half a cache line, and most nodes have fewer children."""


class BlockedEdge(NamedTuple):
    """An edge that is to be made with its child.

    others: the priors of the node's other slots without a child, -1 elsewhere.
    num_children, last_block: of the node.
    """

    slot: Int32[Array, "B"]
    prior: Float32[Array, "B"]
    others: Float32[Array, "K B"]
    num_children: Int32[Array, "B"]
    last_block: Int32[Array, "B"]


@pytree_dataclass
class BlockedEdges:
    """Edges in the order in which their children were made, in blocks of L lanes. Arrays are flat in a simulation.

    Block n < N is the first block of node n. A node with more than L children has a linked list of blocks. Edges
    without a child differ by their prior alone, so the best of them stands for all; each node keeps it.

    next_block: the next block of the list, 0 at its end.
    last_block: of a node's list, where it has more than one block.
    untried_slot, untried_prior, untried_mass: see `Untried`.
    """

    child: Int32[Array, "M B L"] | Int32[Array, "MBL"]
    features: Features
    upper: Float32[Array, "M B L"] | Float32[Array, "MBL"] | None
    next_block: Int32[Array, "M B"] | Int32[Array, "MB"]
    last_block: Int32[Array, "N B"] | Int32[Array, "NB"]
    num_blocks: Int32[Array, "B"]
    num_children: Int32[Array, "N B"] | Int32[Array, "NB"]
    untried_slot: Int32[Array, "N B"] | Int32[Array, "NB"]
    untried_prior: Float32[Array, "N B"] | Float32[Array, "NB"]
    untried_mass: Float32[Array, "N B"] | Float32[Array, "NB"] | None

    @classmethod
    def create(cls, selection: Selection, prior: Float32[Array, "B K"], num_nodes: int, solver: bool) -> "BlockedEdges":
        """The edges of roots with `prior`."""
        batch = len(prior)
        num_blocks = num_nodes + num_nodes // LANES
        slot, slot_prior = best_untried(prior.T)
        features = [jnp.zeros((num_blocks, batch, LANES), jnp.float32) for _ in selection.untried_features(slot_prior)]
        features[0] = jnp.full_like(features[0], -jnp.inf)
        return cls(
            child=jnp.full((num_blocks, batch, LANES), NO_CHILD, jnp.int32),
            features=tuple(features),
            upper=jnp.full((num_blocks, batch, LANES), -1, jnp.float32) if solver else None,
            next_block=jnp.zeros((num_blocks, batch), jnp.int32),
            last_block=jnp.zeros((num_nodes, batch), jnp.int32),
            num_blocks=jnp.full(batch, num_nodes, jnp.int32),
            num_children=jnp.zeros((num_nodes, batch), jnp.int32),
            untried_slot=allocate(num_nodes, slot),
            untried_prior=allocate(num_nodes, slot_prior),
            untried_mass=allocate(num_nodes, prior_mass(prior.T)) if selection.folds else None,
        )

    def best(
        self, selection: Selection, terms: PyTree, index: Index, num_slots: int, batch: int
    ) -> tuple[Index, Index]:
        del num_slots
        tree_index = tree_of(index, batch)

        def in_next_block(carry: _Blocks) -> _Blocks:
            block, best = carry
            at = block * batch + tree_index
            better = best_lane(self.features, selection, terms, at * LANES, best, 0, LANES)
            return jnp.where(block != 0, read(self.next_block, at), 0), jnp.where(block != 0, better, best)

        best = best_lane(self.features, selection, terms, index * LANES, index * LANES, 1, LANES)
        _, best = jax.lax.while_loop(_any_block_left, in_next_block, (read(self.next_block, index), best))
        best_score = selection.score(terms, tuple(read(flat, best) for flat in self.features))
        untried = read(self.untried_prior, index)
        is_new = (untried >= 0) & (selection.score(terms, selection.untried_features(untried)) > best_score)
        return best, jnp.where(is_new, NO_CHILD, read(self.child, best))

    def fold(self, selection: Selection, index: Index, num_slots: int, batch: int) -> Fold:
        del num_slots
        tree_index = tree_of(index, batch)

        def fold(function: Callable[[_C, Features], _C], start: _C) -> _C:
            def over_next_block(carry: tuple[Int32[Array, "R"], _C]) -> tuple[Int32[Array, "R"], _C]:
                block, result = carry
                at = block * batch + tree_index
                following = function(result, lanes_of(self.features, at, LANES))
                exists = block != 0
                result = jax.tree.map(lambda new, old: jnp.where(exists, new, old), following, result)
                return jnp.where(exists, read(self.next_block, at), 0), result

            assert self.untried_mass is not None
            untried = selection.untried_features(read(self.untried_mass, index)[None])
            result = function(function(start, untried), lanes_of(self.features, index, LANES))
            begin = read(self.next_block, index), result
            _, result = jax.lax.while_loop(_any_block_left, over_next_block, begin)
            return result

        return fold

    def new_edge(
        self,
        prior: FlatPrior,
        index: Int32[Array, "B"],
        edge: Int32[Array, "B"],
        num_slots: int,
        slot: Int32[Array, "B"] | None,
    ) -> BlockedEdge:
        del edge
        best, best_prior = read(self.untried_slot, index), read(self.untried_prior, index)
        if slot is None:
            slot, slot_prior = best, best_prior
        else:
            slot = jnp.where(slot < 0, best, slot)
            slot_prior = read(prior, index * num_slots + slot)
        slots = jnp.arange(num_slots, dtype=jnp.int32)[:, None]
        others = jnp.where(slots == slot[None], -1.0, read(prior, index[None] * num_slots + slots))
        return BlockedEdge(slot, slot_prior, others, read(self.num_children, index), read(self.last_block, index))

    def untried_without(self, new: BlockedEdge) -> Untried:
        return self._untried(new.others)

    def priors(self, logits: Float32[Array, "K R"]) -> NodePriors:
        prior = legal_softmax(logits)
        return NodePriors(prior.T, self._untried(prior))

    def _untried(self, prior: Float32[Array, "K R"]) -> Untried:
        return Untried(*best_untried(prior), None if self.untried_mass is None else prior_mass(prior))

    def attach(
        self,
        prior: FlatPrior,
        new: BlockedEdge,
        untried: Untried | None,
        index: Int32[Array, "B"],
        child: Int32[Array, "B"],
    ) -> tuple["BlockedEdges", FlatPrior, Int32[Array, "B"]]:
        assert untried is not None
        batch, nowhere = len(index), prior.size
        num_slots = len(new.others)
        made = index < nowhere
        leaf = jnp.where(made, index, 0)
        tree_index = jnp.arange(batch, dtype=jnp.int32)
        count, lane = new.num_children, new.num_children % LANES
        last = jnp.where(count <= LANES, leaf, new.last_block * batch + tree_index)
        opens = made & (lane == 0) & (count > 0)
        block = jnp.where(opens, self.num_blocks * batch + tree_index, last)
        edge = block * LANES + lane
        at_edge = jnp.where(made, edge, self.child.size)
        edges = dataclasses.replace(
            self,
            child=put(self.child, at_edge, child),
            upper=None if self.upper is None else put(self.upper, at_edge, jnp.ones_like(new.prior)),
            next_block=put(self.next_block, jnp.where(opens, last, self.next_block.size), self.num_blocks),
            last_block=put(self.last_block, index, jnp.where(opens, self.num_blocks, new.last_block)),
            num_blocks=self.num_blocks + opens,
            num_children=put(self.num_children, index, count + 1),
            untried_slot=put(self.untried_slot, index, untried.slot),
            untried_prior=put(self.untried_prior, index, untried.prior),
        )
        if self.untried_mass is not None and untried.mass is not None:
            edges = dataclasses.replace(edges, untried_mass=put(self.untried_mass, index, untried.mass))
        slot = jnp.where(made, leaf * num_slots + new.slot, nowhere)
        return edges, put(prior, slot, jnp.full_like(new.prior, -1)), edge

    def write_nodes(
        self, selection: Selection, prior: FlatPrior, priors: NodePriors, node: Node, count: int
    ) -> tuple["BlockedEdges", FlatPrior]:
        del selection
        assert priors.untried is not None
        slot, slot_prior, mass = priors.untried
        edges = dataclasses.replace(
            self,
            untried_slot=write_rows(self.untried_slot, slot, node, count),
            untried_prior=write_rows(self.untried_prior, slot_prior, node, count),
        )
        if self.untried_mass is not None and mass is not None:
            edges = dataclasses.replace(edges, untried_mass=write_rows(self.untried_mass, mass, node, count))
        return edges, write_rows(prior, materialize(priors.prior), node, count)

    def upper_of(self, upper: Float32[Array, "MBL"], index: Index, num_slots: int, batch: int) -> Float32[Array, "R"]:
        del num_slots
        tree_index = tree_of(index, batch)

        def in_next_block(carry: _Blocks) -> _Blocks:
            block, highest = carry
            at = block * batch + tree_index
            higher = jnp.maximum(highest, highest_lane(upper, at * LANES, LANES))
            return jnp.where(block != 0, read(self.next_block, at), 0), jnp.where(block != 0, higher, highest)

        begin = read(self.next_block, index), highest_lane(upper, index * LANES, LANES)
        _, highest = jax.lax.while_loop(_any_block_left, in_next_block, begin)
        return jnp.where(read(self.untried_prior, index) >= 0, 1.0, highest)

    def with_root_prior(
        self,
        selection: Selection,
        prior: Float32[Array, "B K"],
        visits: Int32[Array, "B K"],
        q: Float32[Array, "B K"],
        slot: Int32[Array, "N B"],
        sums: Float32[Array, "N B 2"],
    ) -> tuple["BlockedEdges", Float32[Array, "B K"]]:
        del q
        untried = jnp.where(visits > 0, -1.0, prior)
        best_slot, best_prior = best_untried(untried.T)
        batch = jnp.arange(len(prior), dtype=jnp.int32)

        def any_left(carry: tuple[Any, ...]) -> Bool[Array, ""]:
            return jnp.any(carry[1])

        def in_block(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            block, on, features = carry
            child = jnp.abs(self.child[block, batch])
            at = child, batch[:, None]
            child_visits, returns = sums[(*at, 0)], sums[(*at, 1)]
            rows = selection.features(returns / child_visits, prior[batch[:, None], slot[at]], child_visits)
            changed = on[:, None] & (child != NO_CHILD)
            # The first feature may hold a proven return in place of the mean: it stays.
            others = tuple(
                old.at[block, batch].set(jnp.where(changed, row, old[block, batch]))
                for old, row in zip(features[1:], rows[1:], strict=True)
            )
            block = self.next_block[block, batch]
            return block, on & (block != 0), (features[0], *others)

        begin = jnp.zeros_like(batch), jnp.ones_like(batch, dtype=bool), self.features
        _, _, features = jax.lax.while_loop(any_left, in_block, begin)
        mass = self.untried_mass
        edges = dataclasses.replace(
            self,
            features=features,
            untried_slot=self.untried_slot.at[0].set(best_slot),
            untried_prior=self.untried_prior.at[0].set(best_prior),
            untried_mass=None if mass is None else mass.at[0].set(jnp.sum(jnp.maximum(untried, 0), axis=1)),
        )
        return edges, untried

    def renumber(
        self, source: Int32[Array, "N B"], number: Int32[Array, "N B"], made: Bool[Array, "N B"]
    ) -> "BlockedEdges":
        child, new = renumbered_children(self.child, number)
        # A block beyond the first of its node stays where the first child in it does.
        num_nodes, batch = source.shape
        stays = new[num_nodes:, 0] > 0
        position = jnp.where(stays, jnp.cumsum(stays, axis=0) - 1, len(stays))
        others = jnp.broadcast_to(jnp.arange(len(stays), dtype=jnp.int32)[:, None], stays.shape)
        columns = jnp.broadcast_to(jnp.arange(batch, dtype=jnp.int32), stays.shape)
        other_source = jnp.zeros_like(others).at[position, columns].set(others, mode="drop")
        num_others = jnp.sum(stays, axis=0, dtype=jnp.int32)
        used = jnp.concatenate([made, others < num_others[None]])

        def blocks(rows: Shaped[Array, "..."], empty: int | float) -> Shaped[Array, "..."]:
            moved = jnp.concatenate([take_rows(rows[:num_nodes], source), take_rows(rows[num_nodes:], other_source)])
            return jnp.where(used.reshape(*used.shape, *[1] * (rows.ndim - 2)), moved, jnp.asarray(empty, rows.dtype))

        def renumbered(block: Int32[Array, "..."]) -> Int32[Array, "..."]:
            new_block = num_nodes + jnp.take_along_axis(position, jnp.maximum(block - num_nodes, 0), axis=0)
            return jnp.where(block == 0, 0, new_block)

        first, *rest = self.features
        return BlockedEdges(
            child=blocks(child, NO_CHILD),
            features=(blocks(first, -jnp.inf), *(blocks(feature, 0) for feature in rest)),
            upper=None if self.upper is None else blocks(self.upper, -1),
            next_block=blocks(renumbered(self.next_block), 0),
            last_block=take_rows(renumbered(self.last_block), source),
            num_blocks=num_nodes + num_others,
            num_children=jnp.where(made, take_rows(self.num_children, source), 0),
            untried_slot=take_rows(self.untried_slot, source),
            untried_prior=take_rows(self.untried_prior, source),
            untried_mass=None if self.untried_mass is None else take_rows(self.untried_mass, source),
        )


def _any_block_left(carry: tuple[Int32[Array, "R"], Any]) -> Bool[Array, ""]:
    return jnp.any(carry[0] != 0)
