"""Wins, losses and draws that are proven during a search. Axis letters: see `tree.py`.

Score-bounded search (Cazenave and Saffidine 2010): a node is worth at least as much as any of its edges, and at most as
much as the best of them can be. Where the bounds are equal the node is proven and no longer searched. Returns must lie
in -1..1.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from azjax.core.arrays import put, put_max, put_min, read
from azjax.core.pytree import replace_fields
from azjax.core.xla import materialize
from azjax.search.edges import Index
from azjax.search.selection import LOST
from azjax.search.tree import ROOT, Nodes, RootChildren, Tree

_WIDTH = 2  # of `Tree.bounds`


def unproven(terminated: Bool[Array, "R"]) -> Float32[Array, "R 2"]:
    """`Tree.bounds` of new nodes: 0 and 0 after the end, -1 and 1 before."""
    bound = jnp.where(terminated, jnp.float32(0), 1.0)
    return jnp.stack([-bound, bound], axis=1)


def is_proven(tree: Tree, index: Index) -> Bool[Array, "R"]:
    """Which nodes are proven; none without a solver."""
    if tree.bounds is None:
        return jnp.zeros(len(index), bool)
    return read(tree.bounds, index * _WIDTH) == read(tree.bounds, index * _WIDTH + 1)


def prove(
    tree: Tree, index: Index, edge: Index, above: Index, value: Float32[Array, "R"]
) -> tuple[Tree, Float32[Array, "R"], Float32[Array, "R"]]:
    """Updates the bounds of the nodes at `above` from those of the nodes at `index`, behind `edge`.

    Args:
      edge: out of range where there is nothing to update.
      value: of the nodes at `index`.

    Returns:
      the trees; `value`, or the proven one; and what stands for the mean return of the edge: its proven return, `LOST`
      in place of -1, and NaN where nothing is proven.
    """
    assert tree.bounds is not None
    assert tree.edges.upper is not None
    unique = len(index) == tree.batch
    node = tree.at(index)
    lower, upper = read(tree.bounds, index * _WIDTH), read(tree.bounds, index * _WIDTH + 1)
    on = edge < tree.edges.child.size
    proven = on & (lower == upper)
    edge_lower, edge_upper = _returns(node, lower, upper)
    exact = jnp.where(proven, jnp.where(edge_upper <= -1, LOST, edge_upper), jnp.nan)
    # No simulation goes on from a proven node.
    at_proven = jnp.where(proven, edge, tree.edges.child.size)
    value = jnp.where(proven, lower, value)
    # All reads come before any write: otherwise XLA copies the array that is written.
    edge_lower, edge_upper, exact, at_proven, value = materialize((edge_lower, edge_upper, exact, at_proven, value))
    edges = replace_fields(
        tree.edges,
        child=put(tree.edges.child, at_proven, -(index // tree.batch), unique),
        upper=put(tree.edges.upper, edge, edge_upper, unique),
    )
    upper_above = edges.highest_upper(above)
    above = jnp.where(on, above, tree.num_nodes * tree.batch)
    bounds = put_max(tree.bounds, above * _WIDTH, edge_lower, unique)
    bounds = put_min(bounds, above * _WIDTH + 1, upper_above, unique)
    return replace_fields(tree, bounds=bounds, edges=edges), value, exact


def root_bounds(tree: Tree) -> Float32[Array, "B 2"]:
    """The bounds of the roots' values, -1 and 1 without a solver."""
    if tree.bounds is None:
        return jnp.broadcast_to(jnp.array([-1.0, 1.0], jnp.float32), (tree.batch, 2))
    return bounds_by_node(tree)[ROOT]


def bounds_by_node(tree: Tree) -> Float32[Array, "N B 2"]:
    """The bounds of all nodes."""
    bounds = tree.grids().bounds
    assert bounds is not None
    return bounds


def playable(tree: Tree, children: RootChildren, valid: Bool[Array, "B K"]) -> Bool[Array, "B K"]:
    """The valid slots of the roots, with these children, that no proof rules out.

    They are those that reach the value of a proven root, and otherwise those that are not proven lost.
    """
    if tree.bounds is None:
        return valid
    index = children.at
    bounds = read(tree.bounds, index * _WIDTH), read(tree.bounds, index * _WIDTH + 1)
    slot_lower, slot_upper = map(children.by_slot, _returns(tree.at(index), *bounds))
    lower, upper = root_bounds(tree)[:, :1], root_bounds(tree)[:, 1:]
    proven = lower == upper
    remains = jnp.where(proven, slot_lower >= lower, slot_upper > -1)
    return valid & jnp.where(children.exists, remains, ~proven)


def proven_returns(tree: Tree, index: Index) -> Float32[Array, "R"]:
    """The proven returns of the edges to nodes, and their mean returns where nothing is proven."""
    node = tree.at(index)
    if tree.bounds is None:
        return node.q
    lower = read(tree.bounds, index * _WIDTH)
    return jnp.where(is_proven(tree, index), node.reward + node.discount * lower, node.q)


def proven_root_returns(tree: Tree, children: RootChildren) -> Float32[Array, "B K"]:
    """`proven_returns` of the roots' slots, 0 where there is no child."""
    return children.by_slot(proven_returns(tree, children.at))


def _returns(
    node: Nodes, lower: Float32[Array, "..."], upper: Float32[Array, "..."]
) -> tuple[Float32[Array, "..."], Float32[Array, "..."]]:
    """The bounds of the returns of the edges to nodes with these bounds."""
    ends = node.reward + node.discount * lower, node.reward + node.discount * upper
    return jnp.minimum(*ends), jnp.maximum(*ends)
