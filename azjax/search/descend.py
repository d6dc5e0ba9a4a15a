"""The way down a tree, from its root to where it is to grow. Axis letters: see `tree.py`; `D` depth.

The path is recorded on the way down and added along on the way up, so no tree array is ever carried through a
loop over depth that is vmapped (which would copy it at each step).
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import apart, places, read, read_row, tree_of, write_rows
from azjax.games.repetition import History
from azjax.search.lanes import NO_CHILD
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, VISITS, Tree


class Path(NamedTuple):
    """Where simulations went, below the root; row d is depth d + 1, R lanes wide.

    nodes: int32 [D * R]; N, which no node has, where the path is shorter.
    edges: int32 [D * R]; the edges to them.
    longest: int32 []; the length of the longest.
    """

    nodes: chex.Array
    edges: chex.Array
    longest: chex.Array

    @classmethod
    def room(cls, tree: Tree, max_depth: int) -> "Path":
        """Of length 0, with room for the longest path through these trees; R is B."""
        rows = max(1, min(tree.num_nodes - 1, max_depth)) + 1
        nothing = jnp.zeros(rows * tree.batch, jnp.int32)
        return cls(nothing, nothing, jnp.int32(0))


class Leaf(NamedTuple):
    """Where simulations leave the trees.

    node: int32 [R]; the last one of the path.
    edge: int32 [R]; the edge that is to get a child, where it exists.
    expand: bool [R]; False where the path ended at a node that nothing follows.
    running: bool [R]; False where the root itself is over, or proven.
    """

    node: chex.Array
    edge: chex.Array
    expand: chex.Array
    running: chex.Array


class FirstStep(NamedTuple):
    """A step from the roots.

    slot: int32 [B].
    edge: int32 [B]; of the slot; anything where edges are kept in chains and the slot has no child yet.
    child: int32 [B]; where the edge leads, see `Table.child`.
    """

    slot: chex.Array
    edge: chex.Array
    child: chex.Array


def descend(
    tree: Tree, selection: Selection, room: Path, node: chex.Array, first: FirstStep | None = None
) -> tuple[Path, Leaf]:
    """Walks each tree from its root to an edge that has no node yet, or to a node that nothing follows; R is B.

    Args:
      room: an earlier path, which is written over.
      node: the one that is made next.
      first: the step from the root, where the rule of selection is not to choose it.
    """
    num_nodes, batch = tree.num_nodes, tree.batch

    def goes_on(carry: tuple) -> chex.Array:
        return jnp.any(carry[1])

    def go_down(carry: tuple) -> tuple:
        place = places(carry[2].node, batch)
        fold = tree.edges.fold(selection, place, tree.num_slots, batch, node)
        terms = selection.terms(read(tree.sums, place * 2 + VISITS), place, fold)
        if selection.folds:
            terms = apart(lambda terms: terms, terms, node)
        return take(carry, *tree.edges.best(selection, terms, place, tree.num_slots, batch, node))

    def take(carry: tuple, edge: chex.Array, child: chex.Array) -> tuple:
        path, on, leaf = carry
        is_new = child == NO_CHILD
        path = Path(
            nodes=write_rows(path.nodes, jnp.where(on & ~is_new, jnp.abs(child), num_nodes), path.longest),
            edges=write_rows(path.edges, edge, path.longest),
            longest=path.longest + 1,
        )
        below = on & (child > 0)
        # A path that ends keeps the node above its last edge: there a new node is hung up.
        leaf = Leaf(
            node=jnp.where(below, child, leaf.node),
            edge=jnp.where(on, edge, leaf.edge),
            expand=leaf.expand | (on & is_new),
            running=leaf.running,
        )
        return path, below, leaf

    zeros = jnp.zeros(batch, jnp.int32)
    roots = places(zeros, batch)
    running = read(tree.facts, roots * 3 + DISCOUNT) != 0
    if tree.bounds is not None:
        running &= read(tree.bounds, roots * 2) != read(tree.bounds, roots * 2 + 1)
    start = room._replace(longest=jnp.int32(0)), running, Leaf(zeros, zeros, zeros > 0, running)
    if first is not None:
        start = take(start, first.edge, first.child)
    path, _, leaf = jax.lax.while_loop(goes_on, go_down, start)
    return path, leaf


def occurred_before(tree: Tree, histories: History, path: Path, keys: chex.Array) -> chex.Array:
    """bool [R]: positions of these keys, uint32 [R, 2], occurred on the path, or before its root."""
    num_nodes, lanes = tree.num_nodes, len(keys)
    tree_index = tree_of(jnp.arange(lanes, dtype=jnp.int32), tree.batch)

    def look(step: chex.Array, found: chex.Array) -> chex.Array:
        node = read_row(path.nodes, step, lanes)
        place = jnp.minimum(node, num_nodes - 1) * tree.batch + tree_index
        same = jnp.all(read(tree.keys, place, 2) == keys, axis=1)
        return found | (same & (node < num_nodes))

    before_root = jax.vmap(jax.vmap(History.contains), in_axes=(None, 0))(histories, keys.reshape(-1, tree.batch, 2))
    return jax.lax.fori_loop(0, path.longest, look, before_root.reshape(-1))
