"""New nodes below the leaves of simulations. Axis letters: see `tree.py`; `R` leaves of a step."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree, UInt32

from azjax.core.arrays import flat_index, read, tree_of, write_rows
from azjax.core.xla import materialize
from azjax.search.descend import FirstStep, Leaf, Path, occurred_before
from azjax.search.dynamics import Dynamics, Evaluation, Step
from azjax.search.edges import NewEdge, NodePriors, Untried
from azjax.search.selection import Selection
from azjax.search.tree import ROOT, Tree, new_bounds


def step_below(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    path: Path,
    leaf: Leaf,
    first: FirstStep | None,
) -> tuple[NewEdge, Step]:
    """The edges of the leaves that are to get a child, and the steps along them; R is B."""
    new = new_edge(tree, leaf, first)
    return new, step_from_leaves(dynamics, params, key, tree, path, leaf, new.slot)


def expand(
    tree: Tree,
    selection: Selection,
    leaf: Leaf,
    new: NewEdge,
    step: Step,
    evaluation: Evaluation,
    untried: Untried | None,
    priors: NodePriors,
    node: Int32[Array, ""],
) -> tuple[Tree, Int32[Array, "B"], Int32[Array, "B"], Float32[Array, "B"]]:
    """Makes `node` below the leaves that are to be expanded, unless it is a spare row; R is B.

    Returns:
      the trees; the edges to the new nodes; the nodes made, N where none was; and the values of the positions at the
      ends of the paths, seen by their players to move.
    """
    expand = leaf.expand & (node < tree.max_nodes)
    tree, edge = attach(tree, leaf, new, untried, expand, jnp.where(step.discount == 0, -node, node))
    tree = write_nodes(tree, selection, leaf, new.slot, new.prior, step, evaluation, priors, node, 1)
    value = jnp.where(step.discount != 0, evaluation.value, 0.0)
    # A full tree makes no node: the path ends at the leaf, whose value is that of the step.
    leaf_value = jnp.where(leaf.expand, step.reward + step.discount * value, 0.0)
    return tree, edge, jnp.where(expand, node, tree.num_nodes), jnp.where(expand, value, leaf_value)


def new_edge(tree: Tree, leaf: Leaf, first: FirstStep | None = None) -> NewEdge:
    """The edges of the leaves that are to get a child."""
    slot = None if first is None else jnp.where(leaf.node == ROOT, first.slot, -1)
    new: NewEdge = tree.edges.new_edge(tree.prior, flat_index(leaf.node, tree.batch), leaf.edge, tree.num_slots, slot)
    return new


def attach(
    tree: Tree, leaf: Leaf, new: NewEdge, untried: Untried | None, expand: Bool[Array, "B"], child: Int32[Array, "B"]
) -> tuple[Tree, Int32[Array, "B"]]:
    """Makes the edges of `new_edge` lead to `child` where `expand` holds; see `Edges.attach`.

    Returns:
      the trees, and the flat indices of the edges.
    """
    index = jnp.where(expand, flat_index(leaf.node, tree.batch), tree.prior.size)
    edges, prior, edge = tree.edges.attach(tree.prior, new, untried, index, child)
    return dataclasses.replace(tree, edges=edges, prior=prior), edge


def step_from_leaves(
    dynamics: Dynamics, params: PyTree, key: PRNGKeyArray, tree: Tree, path: Path, leaf: Leaf, slot: Int32[Array, "R"]
) -> Step:
    """Plays the actions of `slot` at the leaves."""
    tree_index = tree_of(jnp.arange(len(slot), dtype=jnp.int32), tree.batch)
    index = leaf.node * tree.batch + tree_index
    occurred, histories = None, tree.histories
    if histories is not None:

        def occurred(keys: UInt32[Array, "R 2"]) -> Bool[Array, "R"]:
            return occurred_before(tree, histories, path, keys)

    action = slot if tree.actions is None else read(tree.actions, index * tree.num_slots + slot)
    states = tree.packing.unpack(read(tree.positions, index, tree.packing.num_words))
    return dynamics.step(params, key, states, action, occurred)


def write_nodes(
    tree: Tree,
    selection: Selection,
    leaf: Leaf,
    slot: Int32[Array, "R"],
    prior: Float32[Array, "R"],
    step: Step,
    evaluation: Evaluation,
    priors: NodePriors,
    node: Int32[Array, ""],
    count: int,
) -> Tree:
    """The trees with the rows of `count` new nodes, from number `node` on.

    Rows of leaves that are not expanded are written too, but nothing leads to them.

    Args:
      tree: the trees, flat.
      selection: the rule of selection.
      leaf: the parents of the new nodes.
      slot: of the parent, through which each node is reached.
      prior: of that slot.
      step: into the new positions.
      evaluation: of the new positions.
      priors: of the new nodes.
      node: see above.
      count: R / B.
    """

    def write(flat: Array, columns: list[Array]) -> Array:
        return write_rows(flat, jnp.stack(columns, axis=1), node, count)

    edges, new_prior = tree.edges.write_nodes(selection, tree.prior, priors, node, count)
    keys, actions, bounds = tree.keys, tree.actions, tree.bounds
    if keys is not None:
        assert step.keys is not None
        keys = write_rows(keys, step.keys, node, count)
    positions = write_rows(tree.positions, tree.packing.pack(step.states), node, count)
    facts = write(tree.facts, [step.reward, step.discount, prior])
    links = write(tree.links, [leaf.node, slot])
    if actions is not None:
        assert evaluation.actions is not None
        actions = write_rows(actions, materialize(evaluation.actions), node, count)
    if bounds is not None:
        bounds = write_rows(bounds, new_bounds(step.discount == 0), node, count)
    return dataclasses.replace(
        tree,
        keys=keys,
        positions=positions,
        facts=facts,
        links=links,
        prior=new_prior,
        actions=actions,
        edges=edges,
        bounds=bounds,
    )
