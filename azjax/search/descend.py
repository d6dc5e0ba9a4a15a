"""From the root of a tree down to its leaf. Axis letters: see `tree.py`; `D` depth, `R` leaves of a step.

The path is recorded on the way down and results are added along it on the way up, so that no loop over depth carries
an array of the tree: under `vmap` it would be copied at each step.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, UInt32

from azjax.core.arrays import flat_index, read, read_row, tree_of, write_rows
from azjax.core.xla import materialize
from azjax.games.repetition import History
from azjax.search.edges import NO_CHILD
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, VISITS, Tree


class Path(NamedTuple):
    """The paths of R simulations below the root; row d has depth d + 1. Rows beyond a path's end have no meaning.

    nodes: N, which no node has, where the path is shorter than the longest.
    edges: the edges to them.
    longest: the length of the longest path.
    """

    nodes: Int32[Array, "DR"]
    edges: Int32[Array, "DR"]
    longest: Int32[Array, ""]

    @classmethod
    def allocate(cls, tree: Tree, max_depth: int) -> "Path":
        """Empty, with capacity for the longest path through these trees; R is B."""
        rows = max(1, min(tree.num_nodes - 1, max_depth)) + 1
        zeros = jnp.zeros(rows * tree.batch, jnp.int32)
        return cls(zeros, zeros, jnp.int32(0))


class Leaf(NamedTuple):
    """The ends of paths.

    node: the last node of the path.
    edge: the edge that is to get a child; in `BlockedEdges` any edge of the node.
    expand: False where the path ended at a node that is never expanded.
    running: False where the root itself is over, or proven.
    """

    node: Int32[Array, "R"]
    edge: Int32[Array, "R"]
    expand: Bool[Array, "R"]
    running: Bool[Array, "R"]


class FirstStep(NamedTuple):
    """A step from the roots.

    edge: of the slot; any edge where `BlockedEdges` have none for it yet.
    child: where the edge leads; see `Edges.child`.
    """

    slot: Int32[Array, "B"]
    edge: Int32[Array, "B"]
    child: Int32[Array, "B"]


_Carry: TypeAlias = tuple[Path, Bool[Array, "B"], Leaf]
"""The paths so far, which of them go on, and their ends."""


def descend(tree: Tree, selection: Selection, scratch: Path, first: FirstStep | None = None) -> tuple[Path, Leaf]:
    """Follows `selection` from each root to an edge without a child, or to a node that is never expanded; R is B.

    Args:
      tree: the trees, flat.
      selection: the rule of selection.
      scratch: an earlier path, which is written over.
      first: the step from the root, where `selection` does not choose it.
    """
    num_nodes, batch = tree.num_nodes, tree.batch

    def any_running(carry: _Carry) -> Bool[Array, ""]:
        return jnp.any(carry[1])

    def select(carry: _Carry) -> _Carry:
        index = flat_index(carry[2].node, batch)
        fold = tree.edges.fold(selection, index, tree.num_slots, batch)
        terms = selection.terms(read(tree.sums, index * 2 + VISITS), index, fold)
        if selection.folds:
            terms = materialize(terms)
        return follow(carry, *tree.edges.best(selection, terms, index, tree.num_slots, batch))

    def follow(carry: _Carry, edge: Int32[Array, "B"], child: Int32[Array, "B"]) -> _Carry:
        path, on, leaf = carry
        is_new = child == NO_CHILD
        path = Path(
            nodes=write_rows(path.nodes, jnp.where(on & ~is_new, jnp.abs(child), num_nodes), path.longest),
            edges=write_rows(path.edges, edge, path.longest),
            longest=path.longest + 1,
        )
        below = on & (child > 0)
        # A path that ends keeps the node above its last edge: the parent of a new node.
        leaf = Leaf(
            node=jnp.where(below, child, leaf.node),
            edge=jnp.where(on, edge, leaf.edge),
            expand=leaf.expand | (on & is_new),
            running=leaf.running,
        )
        return path, below, leaf

    zeros = jnp.zeros(batch, jnp.int32)
    roots = flat_index(zeros, batch)
    running = read(tree.facts, roots * 3 + DISCOUNT) != 0
    if tree.bounds is not None:
        running &= read(tree.bounds, roots * 2) != read(tree.bounds, roots * 2 + 1)
    start = scratch._replace(longest=jnp.int32(0)), running, Leaf(zeros, zeros, zeros > 0, running)
    if first is not None:
        start = follow(start, first.edge, first.child)
    path, _, leaf = jax.lax.while_loop(any_running, select, start)
    return path, leaf


def occurred_before(tree: Tree, histories: History, path: Path, keys: UInt32[Array, "R 2"]) -> Bool[Array, "R"]:
    """Whether positions with these keys occurred on the path, or in the game before its root."""
    num_nodes, lanes = tree.num_nodes, len(keys)
    tree_index = tree_of(jnp.arange(lanes, dtype=jnp.int32), tree.batch)
    assert tree.keys is not None
    tree_keys = tree.keys

    def compare(depth: Int32[Array, ""], occurred: Bool[Array, "R"]) -> Bool[Array, "R"]:
        node = read_row(path.nodes, depth, lanes)
        index = jnp.minimum(node, num_nodes - 1) * tree.batch + tree_index
        same = jnp.all(read(tree_keys, index, 2) == keys, axis=1)
        return occurred | (same & (node < num_nodes))

    before_root = jax.vmap(jax.vmap(History.contains), in_axes=(None, 0))(histories, keys.reshape(-1, tree.batch, 2))
    occurred: Array = jax.lax.fori_loop(0, path.longest, compare, before_root.reshape(-1))
    return occurred
