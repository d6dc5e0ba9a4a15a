"""Edges of games with many actions: an edge gets its place with its child. Axis letters: see `edges.py`."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Shaped

from azjax.core.arrays import put, read
from azjax.core.pytree import pytree_dataclass, replace_fields
from azjax.search.edges import NO_CHILD, EdgeStore, Index, take_rows, tree_of
from azjax.search.selection import Selection

_C = TypeVar("_C")
_Blocks: TypeAlias = tuple[Int32[Array, "R"], Bool[Array, "R"], Any]
"""The flat index of a block of each of R nodes, whether it exists, and what was computed of the blocks before it."""

LANES = 8
"""L: eight numbers of 32 bits are half a cache line, and most nodes have fewer children."""


class Place(NamedTuple):
    """Where an edge will be.

    edge: its index.
    opens: it is the first edge of another block.
    last: the flat index of the last block before that.
    num_children, last_block: of the node.
    """

    edge: Int32[Array, "R"]
    opens: Bool[Array, "R"]
    last: Int32[Array, "R"]
    num_children: Int32[Array, "R"]
    last_block: Int32[Array, "R"]


@pytree_dataclass
class BlockedEdges(EdgeStore):
    """Edges in the order in which their children were made. Methods: see `EdgeStore`.

    Block n < N is the first block of node n. A node with more than L children has a linked list of blocks.

    slot: of each edge.
    next_block: the next block of the list, 0 at its end.
    last_block: of a node's list, where it has more than one block.
    """

    slot: Int32[Array, "MBL"]
    next_block: Int32[Array, "MB"]
    last_block: Int32[Array, "NB"]
    num_blocks: Int32[Array, "B"]
    num_children: Int32[Array, "NB"]

    @classmethod
    def create(cls, selection: Selection, prior: Float32[Array, "B K"], num_nodes: int, solver: bool) -> "BlockedEdges":
        """The edges of roots with `prior`."""
        batch = len(prior)
        shape = num_nodes + num_nodes // LANES, batch, LANES
        return cls(
            **cls.fields_for(selection, prior, shape, num_nodes, solver),
            slot=jax.lax.empty((math.prod(shape),), jnp.int32),
            next_block=jnp.zeros(shape[0] * batch, jnp.int32),
            last_block=jax.lax.empty((num_nodes * batch,), jnp.int32),
            num_blocks=jnp.full(batch, num_nodes, jnp.int32),
            num_children=jnp.zeros(num_nodes * batch, jnp.int32),
        )

    def over_blocks(self, index: Index, function: Callable[[_C, Index, Bool[Array, "R"]], _C], start: _C) -> _C:
        batch = self.batch
        tree = tree_of(index, batch)

        def any_left(carry: _Blocks) -> Bool[Array, ""]:
            return jnp.any(carry[1])

        def in_next_block(carry: _Blocks) -> _Blocks:
            at, exists, result = carry
            following = read(self.next_block, at)
            return following * batch + tree, exists & (following != 0), function(result, at * LANES, exists)

        # The first block is part of the loop: a second copy of `function` would take long to compile.
        blocks: _Blocks = index, jnp.ones(len(index), bool), start
        result: _C = jax.lax.while_loop(any_left, in_next_block, blocks)[2]
        return result

    def grids(self) -> "BlockedEdges":
        grids = super().grids()
        by_node = {
            name: getattr(self, name).reshape(-1, self.batch) for name in ("next_block", "last_block", "num_children")
        }
        return replace_fields(grids, slot=self.slot.reshape(-1, self.batch, self.lanes), **by_node)

    def slot_of(self, edge: Int32[Array, "..."]) -> Int32[Array, "..."]:
        return read(self.slot, edge)

    @property
    def in_slot_order(self) -> bool:
        return False

    def place(self, index: Index, slot: Index) -> tuple[Index, Place]:
        del slot
        batch = self.batch
        tree = tree_of(index, batch)
        count, last_block = read(self.num_children, index), read(self.last_block, index)
        lane = count % LANES
        last = jnp.where(count <= LANES, index, last_block * batch + tree)
        opens = (lane == 0) & (count > 0)
        edge = jnp.where(opens, read(self.num_blocks, tree) * batch + tree, last) * LANES + lane
        return edge, Place(edge, opens, last, count, last_block)

    def occupy(self, place: Place, index: Index, slot: Index, made: Bool[Array, "R"]) -> "BlockedEdges":
        opens, node = made & place.opens, jnp.where(made, index, self.last_block.size)
        return replace_fields(
            self,
            slot=put(self.slot, jnp.where(made, place.edge, self.slot.size), slot),
            next_block=put(self.next_block, jnp.where(opens, place.last, self.next_block.size), self.num_blocks),
            last_block=put(self.last_block, node, jnp.where(opens, self.num_blocks, place.last_block)),
            num_blocks=self.num_blocks + opens.astype(jnp.int32),
            num_children=put(self.num_children, node, place.num_children + 1),
        )

    def renumber(
        self, source: Int32[Array, "N B"], number: Int32[Array, "N B"], made: Bool[Array, "N B"]
    ) -> "BlockedEdges":
        # A block beyond the first of its node stays where the first child in it does.
        num_nodes, batch = source.shape
        child = self.renumbered_child(number)
        stays = child[num_nodes:, :, 0] != NO_CHILD
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

        return replace_fields(
            self,
            child=blocks(child, NO_CHILD),
            terms=blocks(self.terms, -jnp.inf),
            upper=None if self.upper is None else blocks(self.upper, -1),
            untried=take_rows(self.untried, source),
            slot=blocks(self.slot, 0),
            next_block=blocks(renumbered(self.next_block), 0),
            last_block=take_rows(renumbered(self.last_block), source),
            num_blocks=num_nodes + num_others,
            num_children=jnp.where(made, take_rows(self.num_children, source), 0),
        )
