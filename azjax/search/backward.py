"""The way up a tree: what a simulation found is added along its path. Axis letters: see `tree.py`; `R` lanes, B of
them for each leaf of a step, and lane r is of tree r modulo B.
"""

import dataclasses
import enum

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import add, largest, put, read, read_row, smallest, tree_of
from azjax.search.descend import Leaf, Path
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, PRIOR, RETURNS, REWARD, ROOT, VISITS, Tree

LOST = -1e6
"""The value of an edge that is proven lost: it is not gone while anything else stands."""

VIRTUAL_LOSS = 1.0
"""What a path is taken to have lost for everyone on it while its leaf is not judged yet."""


class Phase(enum.Enum):
    """What is added along a path: a visit with its return, or that in two turns."""

    VISIT = enum.auto()
    CLAIM = enum.auto()  # a visit that lost, before the leaf is judged
    SETTLE = enum.auto()  # the return in place of the loss


def backward(
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    edge: chex.Array,
    made: chex.Array,
    value: chex.Array,
    phase: Phase = Phase.VISIT,
) -> Tree:
    """Adds a visit and its return to the nodes `made`, to every node of the paths, and to the roots.

    Args:
      edge: int32 [R]; leads to the node made.
      made: int32 [R]; below the leaf, N where none was made.
      value: float32 [R]; of the path's end.
      phase: see `Phase`.
    """
    num_nodes, batch, lanes = tree.num_nodes, tree.batch, len(made)
    tree_index = tree_of(jnp.arange(lanes, dtype=jnp.int32), batch)
    nowhere = num_nodes * batch
    unique = lanes == batch

    def add_visit(tree: Tree, place: chex.Array, value: chex.Array) -> Tree:
        returns = {
            Phase.VISIT: value,
            Phase.CLAIM: jnp.full_like(value, -VIRTUAL_LOSS),
            Phase.SETTLE: value + VIRTUAL_LOSS,
        }
        sums, decided = add(tree.sums, place * 2 + RETURNS, returns[phase], unique), tree.decided
        if phase is not Phase.SETTLE:
            sums = add(sums, place * 2 + VISITS, jnp.ones_like(value), unique)
        if decided is not None and phase is not Phase.CLAIM:
            decided = add(decided, place, (value != 0).astype(jnp.float32), unique)
        return dataclasses.replace(tree, sums=sums, decided=decided)

    def visit(tree: Tree, nodes: chex.Array, edge: chex.Array, above: chex.Array, value: chex.Array) -> tuple:
        """Of `nodes` [R] behind edges [R] of the nodes `above` [R], which are worth `value` [R] to their players."""
        on = nodes < num_nodes
        place = jnp.where(on, nodes * batch + tree_index, nowhere)
        at = jnp.minimum(place, nowhere - 1)
        edge, exact = jnp.where(on, edge, tree.edges.child.size), None
        if phase is not Phase.CLAIM:
            reward, discount = read(tree.facts, at * 3 + REWARD), read(tree.facts, at * 3 + DISCOUNT)
            if tree.bounds is not None:
                above = above * batch + tree_index
                tree, value, exact = prove(tree, at, edge, above, reward, discount, value, unique)
            value = jnp.where(on, reward + discount * value, value)
        tree = add_visit(tree, place, value)
        visits = read(tree.sums, at * 2 + VISITS)
        mean = read(tree.sums, at * 2 + RETURNS) / visits
        if exact is not None:
            mean = jnp.where(jnp.isnan(exact), mean, exact)
        changed = selection.features(mean, read(tree.facts, at * 3 + PRIOR), visits)
        features = tuple(put(run, edge, new, unique) for run, new in zip(tree.edges.features, changed, strict=True))
        return dataclasses.replace(tree, edges=dataclasses.replace(tree.edges, features=features)), value

    def go_up(step: chex.Array, carry: tuple) -> tuple:
        tree, value = carry
        depth = path.longest - 1 - step
        nodes, edges = read_row(path.nodes, depth, lanes), read_row(path.edges, depth, lanes)
        above = jnp.where(depth > 0, read_row(path.nodes, jnp.maximum(depth - 1, 0), lanes), ROOT)
        return visit(tree, nodes, edges, above, value)

    tree, value = jax.lax.fori_loop(0, path.longest, go_up, visit(tree, made, edge, leaf.node, value))
    return add_visit(tree, jnp.where(leaf.running, tree_index, nowhere), value)


def prove(
    tree: Tree,
    place: chex.Array,
    edge: chex.Array,
    above: chex.Array,
    reward: chex.Array,
    discount: chex.Array,
    value: chex.Array,
    unique: bool,
) -> tuple[Tree, chex.Array, chex.Array]:
    """Carries what is proven of nodes at places [R] over their edges [R] to the nodes above them, at places [R].

    Score-bounded search (Cazenave and Saffidine 2010): a node is worth at least what one of its edges is, and at most
    what all of them are. Where both are equal the node is proven, and nothing is searched below it any more.

    Returns:
      the trees; `value` [R], or the proven one; and what stands in for the mean return of the edge, float32 [R]: its
      proven return, `LOST` in place of -1, and NaN where nothing is proven.
    """
    lower, upper = read(tree.bounds, place * 2), read(tree.bounds, place * 2 + 1)
    on = edge < tree.edges.child.size
    proven = on & (lower == upper)
    value = jnp.where(proven, lower, value)
    ends = reward + discount * lower, reward + discount * upper
    edge_lower, edge_upper = jnp.minimum(*ends), jnp.maximum(*ends)
    exact = jnp.where(proven, jnp.where(edge_upper <= -1, LOST, edge_upper), jnp.nan)
    uppers = put(tree.edges.upper, edge, edge_upper, unique)
    node = place // tree.batch
    child = put(tree.edges.child, jnp.where(proven, edge, tree.edges.child.size), -node, unique)
    upper_above = tree.edges.upper_of(uppers, above, tree.num_slots, tree.batch)
    above = jnp.where(on, above, tree.num_nodes * tree.batch)
    bounds = largest(tree.bounds, above * 2, edge_lower, unique)
    bounds = smallest(bounds, above * 2 + 1, upper_above, unique)
    edges = dataclasses.replace(tree.edges, child=child, upper=uppers)
    return dataclasses.replace(tree, bounds=bounds, edges=edges), value, exact
