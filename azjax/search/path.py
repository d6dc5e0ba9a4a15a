"""The way from the root of a tree down to a leaf.

It is recorded on the way down, and results are added along it on the way up, so that no loop over depth carries an
array of the tree: under `vmap` it would be copied at each step. Axis letters: see `tree.py`; `D` depth.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from azjax.core.arrays import read
from azjax.search.tree import ROOT, Tree


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

    def depth_of_leaves(self, num_nodes: int, lanes: int) -> Int32[Array, "R"]:
        """The depth of the last node of each path, in trees of this many nodes."""
        nodes = self.nodes.reshape(-1, lanes)
        rows = jnp.arange(len(nodes), dtype=jnp.int32)[:, None]
        return jnp.sum((rows < self.longest) & (nodes < num_nodes), axis=0, dtype=jnp.int32)


class Leaf(NamedTuple):
    """The ends of paths.

    node: the last node of the path.
    edge: the edge that ends it; any edge of the node where it is to get a child.
    expand: False where the path ended at a node that is never expanded.
    running: False where the root itself is over, or proven.
    """

    node: Int32[Array, "R"]
    edge: Int32[Array, "R"]
    expand: Bool[Array, "R"]
    running: Bool[Array, "R"]


class Cutoff(NamedTuple):
    """What holds at the ends of paths in a search that stops at a depth.

    reached: a node that is made there is at that depth.
    value: the evaluation of the last node of the path, which counts again where no node is made.
    """

    reached: Bool[Array, "B"]
    value: Float32[Array, "B"]

    @classmethod
    def of(cls, tree: Tree, path: Path, max_depth: int) -> "Cutoff":
        """At the ends of these paths."""
        depth = path.depth_of_leaves(tree.num_nodes, tree.batch)
        trees = jnp.arange(tree.batch, dtype=jnp.int32)
        last = read(path.nodes, jnp.maximum(depth - 1, 0) * tree.batch + trees)
        last = jnp.where(depth > 0, last, ROOT)
        return cls(depth + 1 == max_depth, tree.at(tree.index(last)).evaluation)


class FirstStep(NamedTuple):
    """A step from the roots, where the rule of selection does not choose it.

    slot: of the action that is taken.
    edge: of the slot; any edge where it has none yet.
    child: where the edge leads, `NO_CHILD` where it has none.
    """

    slot: Int32[Array, "B"]
    edge: Int32[Array, "B"]
    child: Int32[Array, "B"]
