"""New nodes below the leaves that simulations found. Axis letters: see `tree.py`; `R` lanes, see `backward.py`."""

import dataclasses
from typing import Any

import chex
import jax.numpy as jnp

from azjax.core.arrays import apart, laid_out, places, read, tree_of, write_rows
from azjax.search.descend import FirstStep, Leaf, Path, occurred_before
from azjax.search.dynamics import Dynamics, Step
from azjax.search.root import new_bounds
from azjax.search.selection import Selection
from azjax.search.tree import ROOT, Tree


def entry_of(tree: Tree, leaf: Leaf, first: FirstStep | None = None) -> Any:
    """The edges that are to get a child: `TableEntry` or `ChainEntry`. `first`: see `descend`."""
    slot = None if first is None else jnp.where(leaf.node == ROOT, first.slot, -1)
    return tree.edges.new_edge(tree.prior, places(leaf.node, tree.batch), leaf.edge, tree.num_slots, slot)


def attach(
    tree: Tree, leaf: Leaf, new: Any, rest: tuple, expand: chex.Array, child: chex.Array
) -> tuple[Tree, chex.Array]:
    """Leads the edges of `entry_of` to `child` [B] where `expand` [B]. `rest`: see `Table.rest`.

    Returns:
      the trees, and the places of the edges [B].
    """
    # Where the path ended at a terminal node its row is written too, but nothing leads to it.
    at = jnp.where(expand, places(leaf.node, tree.batch), tree.prior.size)
    edges, prior, edge = tree.edges.attach(tree.prior, new, rest, at, child)
    return dataclasses.replace(tree, edges=edges, prior=prior), edge


def step_from(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    path: Path,
    leaf: Leaf,
    slot: chex.Array,
) -> Step:
    """Plays the actions of slots [R] at the leaves [R]."""
    tree_index = tree_of(jnp.arange(len(slot), dtype=jnp.int32), tree.batch)
    place = leaf.node * tree.batch + tree_index
    occurred, histories = None, tree.histories
    if histories is not None:

        def occurred(keys: chex.Array) -> chex.Array:
            return occurred_before(tree, histories, path, keys)

    action = slot if tree.actions is None else read(tree.actions, place * tree.num_slots + slot)
    states = tree.packing.unpack(read(tree.positions, place, tree.packing.num_words))
    return dynamics.step(params, key, states, action, occurred)


def fill(
    tree: Tree,
    selection: Selection,
    leaf: Leaf,
    slot: chex.Array,
    prior: chex.Array,
    step: Step,
    actions: chex.Array | None,
    judged: tuple,
    node: chex.Array,
    count: int,
) -> Tree:
    """The trees with the rows of `count` new nodes, from number `node` on.

    Args:
      leaf, slot, prior: the leaves [R] that the new nodes hang below, and of the edges [R] to them.
      step: into the new positions.
      actions: int32 [R, K]; of the new nodes' slots; None where slot a is action a.
      judged: see `Table.judge`.
    """

    def write(run: chex.Array, columns: list[chex.Array]) -> chex.Array:
        return write_rows(run, jnp.stack(columns, axis=1), node, count)

    edges, priors = tree.edges.fill(selection, tree.prior, judged, node, count)
    return dataclasses.replace(
        tree,
        keys=None if tree.keys is None else write_rows(tree.keys, step.keys, node, count),
        positions=write_rows(tree.positions, tree.packing.pack(step.states), node, count),
        facts=write(tree.facts, [step.reward, step.discount, prior]),
        links=write(tree.links, [leaf.node, slot]),
        prior=priors,
        actions=None if tree.actions is None else write_rows(tree.actions, laid_out(actions, node), node, count),
        edges=edges,
        bounds=None if tree.bounds is None else write_rows(tree.bounds, new_bounds(step.discount == 0), node, count),
    )


def expand(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    tree: Tree,
    selection: Selection,
    path: Path,
    leaf: Leaf,
    node: chex.Array,
    first: FirstStep | None = None,
) -> tuple[Tree, chex.Array, chex.Array, chex.Array]:
    """Makes `node` (int32 []) below the leaves [B] that are to be expanded, if it is not a spare row.

    Returns:
      the trees; the edges [B] to the new nodes; the nodes made [B], N where none was; and what the positions at the
      ends of the paths are worth to their players to move, float32 [B].
    """
    new = entry_of(tree, leaf, first)
    step = step_from(dynamics, params, key, tree, path, leaf, new.slot)
    # All is read before anything is written: otherwise XLA copies what is written.
    step, new = apart(lambda values: values, (step, new), node)
    judgement = dynamics.judge(params, key, step.states, step.output)

    def think(operand: tuple) -> tuple:
        return tree.edges.rest(operand[0]), tree.edges.judge(operand[1])

    rest, judged = apart(think, (new, judgement.logits), node)
    expand = leaf.expand & (node < tree.max_nodes)
    tree, edge = attach(tree, leaf, new, rest, expand, jnp.where(step.discount == 0, -node, node))
    tree = fill(tree, selection, leaf, new.slot, new.prior, step, judgement.actions, judged, node, 1)
    value = jnp.where(step.discount != 0, judgement.value, 0.0)
    # What the leaf is worth for the sake of the new position, where the tree has no room for it.
    of_leaf = jnp.where(leaf.expand, step.reward + step.discount * value, 0.0)
    return tree, edge, jnp.where(expand, node, tree.num_nodes), jnp.where(expand, value, of_leaf)
