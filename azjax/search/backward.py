"""From the leaf back to the root: the result of a simulation is added along its path.

Axis letters: see `tree.py`; `R` leaves of a step, of which leaf r is in tree r modulo B.
"""

import dataclasses
import enum
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

from azjax.core.arrays import add, put, put_max, put_min, read, read_row, tree_of
from azjax.search.descend import Leaf, Path
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, PRIOR, RETURNS, REWARD, ROOT, VISITS, Tree

LOST = -1e6
"""Stands for the mean return of an edge that is proven lost: selection then prefers every other edge."""

VIRTUAL_LOSS = 1.0
"""What every player on a path loses while its leaf waits for an evaluation."""

_Carry: TypeAlias = tuple[Tree, Float32[Array, "R"]]


class Phase(enum.Enum):
    """What `backward` adds along a path."""

    VISIT = enum.auto()  # a visit and its return
    VIRTUAL_LOSS = enum.auto()  # a visit that loses, before the leaf is evaluated
    CORRECTION = enum.auto()  # the return in place of that loss


def backward(
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    edge: Int32[Array, "R"],
    made: Int32[Array, "R"],
    value: Float32[Array, "R"],
    phase: Phase = Phase.VISIT,
) -> Tree:
    """Adds a visit and its return to the nodes `made`, to every node of the paths, and to the roots.

    Args:
      tree: the trees, flat.
      selection: the rule of selection.
      path: of the simulations.
      leaf: the ends of the paths.
      edge: leads to the node made.
      made: the node made below the leaf, N where none was made.
      value: of the path's end, seen by its player to move.
      phase: see `Phase`.
    """
    num_nodes, batch, lanes = tree.num_nodes, tree.batch, len(made)
    tree_index = tree_of(jnp.arange(lanes, dtype=jnp.int32), batch)
    nowhere = num_nodes * batch
    unique = lanes == batch

    def add_visit(tree: Tree, index: Int32[Array, "R"], value: Float32[Array, "R"]) -> Tree:
        returns = {
            Phase.VISIT: value,
            Phase.VIRTUAL_LOSS: jnp.full_like(value, -VIRTUAL_LOSS),
            Phase.CORRECTION: value + VIRTUAL_LOSS,
        }
        sums, decided = add(tree.sums, index * 2 + RETURNS, returns[phase], unique), tree.decided
        if phase is not Phase.CORRECTION:
            sums = add(sums, index * 2 + VISITS, jnp.ones_like(value), unique)
        if decided is not None and phase is not Phase.VIRTUAL_LOSS:
            decided = add(decided, index, (value != 0).astype(jnp.float32), unique)
        return dataclasses.replace(tree, sums=sums, decided=decided)

    def visit(
        tree: Tree,
        nodes: Int32[Array, "R"],
        edge: Int32[Array, "R"],
        above: Int32[Array, "R"],
        value: Float32[Array, "R"],
    ) -> _Carry:
        """Visits `nodes`, reached by `edge` from the nodes `above`, and returns the values of those."""
        on = nodes < num_nodes
        index = jnp.where(on, nodes * batch + tree_index, nowhere)
        at = jnp.minimum(index, nowhere - 1)
        edge, exact = jnp.where(on, edge, tree.edges.child.size), None
        if phase is not Phase.VIRTUAL_LOSS:
            reward, discount = read(tree.facts, at * 3 + REWARD), read(tree.facts, at * 3 + DISCOUNT)
            if tree.bounds is not None:
                above = above * batch + tree_index
                tree, value, exact = prove(tree, at, edge, above, reward, discount, value, unique)
            value = jnp.where(on, reward + discount * value, value)
        tree = add_visit(tree, index, value)
        visits = read(tree.sums, at * 2 + VISITS)
        mean = read(tree.sums, at * 2 + RETURNS) / visits
        if exact is not None:
            mean = jnp.where(jnp.isnan(exact), mean, exact)
        changed = selection.features(mean, read(tree.facts, at * 3 + PRIOR), visits)
        features = tuple(put(flat, edge, new, unique) for flat, new in zip(tree.edges.features, changed, strict=True))
        return dataclasses.replace(tree, edges=dataclasses.replace(tree.edges, features=features)), value

    def go_up(step: Int32[Array, ""], carry: _Carry) -> _Carry:
        tree, value = carry
        depth = path.longest - 1 - step
        nodes, edges = read_row(path.nodes, depth, lanes), read_row(path.edges, depth, lanes)
        above = jnp.where(depth > 0, read_row(path.nodes, jnp.maximum(depth - 1, 0), lanes), ROOT)
        return visit(tree, nodes, edges, above, value)

    tree, value = jax.lax.fori_loop(0, path.longest, go_up, visit(tree, made, edge, leaf.node, value))
    return add_visit(tree, jnp.where(leaf.running, tree_index, nowhere), value)


def prove(
    tree: Tree,
    index: Int32[Array, "R"],
    edge: Int32[Array, "R"],
    above: Int32[Array, "R"],
    reward: Float32[Array, "R"],
    discount: Float32[Array, "R"],
    value: Float32[Array, "R"],
    unique: bool,
) -> tuple[Tree, Float32[Array, "R"], Float32[Array, "R"]]:
    """Updates the bounds of the nodes `above`, flat indices, from those of the nodes at `index` behind `edge`.

    Score-bounded search (Cazenave and Saffidine 2010): a node is worth at least as much as any of its edges, and at
    most as much as the best of them can be. Where the bounds are equal the node is proven and no longer searched.

    Returns:
      the trees; `value`, or the proven one; and what stands for the mean return of the edge: its proven return, `LOST`
      in place of -1, and NaN where nothing is proven.
    """
    assert tree.bounds is not None
    assert tree.edges.upper is not None
    lower, upper = read(tree.bounds, index * 2), read(tree.bounds, index * 2 + 1)
    on = edge < tree.edges.child.size
    proven = on & (lower == upper)
    value = jnp.where(proven, lower, value)
    ends = reward + discount * lower, reward + discount * upper
    edge_lower, edge_upper = jnp.minimum(*ends), jnp.maximum(*ends)
    exact = jnp.where(proven, jnp.where(edge_upper <= -1, LOST, edge_upper), jnp.nan)
    uppers = put(tree.edges.upper, edge, edge_upper, unique)
    node = index // tree.batch
    child = put(tree.edges.child, jnp.where(proven, edge, tree.edges.child.size), -node, unique)
    upper_above = tree.edges.upper_of(uppers, above, tree.num_slots, tree.batch)
    above = jnp.where(on, above, tree.num_nodes * tree.batch)
    bounds = put_max(tree.bounds, above * 2, edge_lower, unique)
    bounds = put_min(bounds, above * 2 + 1, upper_above, unique)
    edges = dataclasses.replace(tree.edges, child=child, upper=uppers)
    return dataclasses.replace(tree, bounds=bounds, edges=edges), value, exact
