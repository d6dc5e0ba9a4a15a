"""Subtree reuse: the tree below the move that was played goes on as the next tree. Axis letters: see `tree.py`."""

import dataclasses

import chex
import jax
import jax.numpy as jnp

from azjax.core.errors import InputError
from azjax.search.blocked import Chain
from azjax.search.dense import Table
from azjax.search.edges import Edges
from azjax.search.lanes import NO_CHILD, best_untried
from azjax.search.selection import Selection
from azjax.search.tree import DISCOUNT, PARENT, PRIOR, RETURNS, REWARD, ROOT, SLOT, VISITS, Tree, root_statistics


@jax.jit
def advance(tree: Tree, action: chex.Array) -> Tree:
    """The trees below `action` int32 [B], with room for as many nodes; empty where the search never tried it.

    Hand them to a policy with the states after the action. Nodes keep their order, so that one pass over them finds
    which of them stay.
    """
    tree = _renumbered(tree, *_renumber(tree, _child_of_root(tree, action)))
    # The root is seen by its own player, and nothing led to it.
    visits, returns = tree.sums[ROOT, :, VISITS], tree.sums[ROOT, :, RETURNS]
    reward, discount = tree.facts[ROOT, :, REWARD], tree.facts[ROOT, :, DISCOUNT]
    facts = tree.facts.at[ROOT, :, REWARD].set(0.0).at[ROOT, :, DISCOUNT].set(jnp.abs(discount))
    return dataclasses.replace(
        tree,
        sums=tree.sums.at[ROOT, :, RETURNS].set((returns - visits * reward) * discount),
        facts=facts.at[ROOT, :, PRIOR].set(1.0),
    )


@jax.jit
def compact(tree: Tree) -> Tree:
    """The same trees with their nodes in a row.

    Simulations make their nodes in all trees at once, so that a tree which begins in the middle of others, or whose
    simulations end at finished games, has rows that hold nothing. Without them there is room again.
    """
    made = tree.visits > 0
    nodes = jnp.broadcast_to(jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None], made.shape)
    number = jnp.where(made, jnp.cumsum(made, axis=0, dtype=jnp.int32) - 1, -1)
    place, columns = jnp.where(made, number, tree.num_nodes), jnp.arange(tree.batch, dtype=jnp.int32)[None]
    source = jnp.full_like(nodes, -1).at[place, columns].set(nodes, mode="drop")
    return _renumbered(tree, source, number, jnp.sum(made, axis=0, dtype=jnp.int32))


def _renumbered(tree: Tree, source: chex.Array, number: chex.Array, count: chex.Array) -> Tree:
    """The trees with other numbers for their nodes; see `_renumber`."""

    def moved(rows: chex.Array) -> chex.Array:
        return _moved(rows, source)

    made = jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None] < count[None]
    links = moved(tree.links)
    parent = jnp.take_along_axis(number, links[..., PARENT], axis=0)
    return dataclasses.replace(
        tree,
        keys=None if tree.keys is None else moved(tree.keys),
        positions=moved(tree.positions),
        sums=jnp.where(made[..., None], moved(tree.sums), 0.0),
        facts=moved(tree.facts),
        links=links.at[..., PARENT].set(parent).at[ROOT].set(0),
        prior=moved(tree.prior),
        actions=None if tree.actions is None else moved(tree.actions),
        edges=_move_edges(tree.edges, source, number, made),
        decided=None if tree.decided is None else jnp.where(made, moved(tree.decided), 0.0),
        bounds=None if tree.bounds is None else moved(tree.bounds),
        num_made=jnp.max(count),
    )


def _child_of_root(tree: Tree, action: chex.Array) -> chex.Array:
    """int32 [B]: the roots' children behind `action` [B]; `ROOT` where there is none."""
    if tree.actions is None:
        taken = tree.links[..., SLOT]
    else:
        taken = jnp.take_along_axis(tree.actions[ROOT], tree.links[..., SLOT].T, axis=1).T
    nodes = jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None]
    found = (tree.visits > 0) & (nodes > ROOT) & (tree.links[..., PARENT] == ROOT) & (taken == action[None])
    return jnp.max(jnp.where(found, nodes, ROOT), axis=0)


def _renumber(tree: Tree, root: chex.Array) -> tuple[chex.Array, chex.Array, chex.Array]:
    """Of the trees below the nodes `root` [B].

    Returns:
      source: int32 [N, B]; the old number of each new node, 0 where there is none.
      number: int32 [N, B]; the new number of each old node, -1 where it goes.
      count: int32 [B]; the nodes that stay.
    """
    batch = jnp.arange(tree.batch, dtype=jnp.int32)
    parents, made = tree.links[..., PARENT], tree.visits > 0

    def number_one(node: chex.Array, carry: tuple) -> tuple:
        source, number, count = carry
        is_root = (node == root) & (root > ROOT)
        stays = is_root | (made[node] & (number[parents[node], batch] >= 0))
        new = jnp.where(stays, count, -1)
        source = source.at[jnp.where(stays, count, tree.num_nodes), batch].set(node, mode="drop")
        return source, number.at[node].set(new), count + stays

    nobody = jnp.full((tree.num_nodes, tree.batch), -1, jnp.int32)
    begin = jnp.zeros_like(nobody), nobody, jnp.zeros(tree.batch, jnp.int32)
    return jax.lax.fori_loop(1, tree.num_nodes, number_one, begin)


def _moved(rows: chex.Array, source: chex.Array) -> chex.Array:
    """Rows [N, B, ...] by their new numbers."""
    return jnp.take_along_axis(rows, source.reshape(*source.shape, *[1] * (rows.ndim - 2)), axis=0)


def _move_edges(edges: Edges, source: chex.Array, number: chex.Array, made: chex.Array) -> Edges:
    """Edges for the new numbers; see `_renumber`."""
    # Lanes before trees, so that numbers are looked up by tree; a child that goes has -1.
    by_lane = jnp.moveaxis(edges.child, 2, 1)
    new = jnp.take_along_axis(number, jnp.abs(by_lane).reshape(-1, number.shape[1]), axis=0).reshape(by_lane.shape)
    child = jnp.moveaxis(jnp.sign(by_lane) * new, 1, 2)
    if isinstance(edges, Table):
        return Table(
            child=jnp.where(made[..., None], _moved(child, source), NO_CHILD),
            features=tuple(_moved(feature, source) for feature in edges.features),
            upper=None if edges.upper is None else _moved(edges.upper, source),
        )

    # A block beyond the first of its node stays where the first child in it does.
    num_nodes, batch = source.shape
    stays = new[num_nodes:, 0] > ROOT
    place = jnp.where(stays, jnp.cumsum(stays, axis=0) - 1, len(stays))
    others = jnp.broadcast_to(jnp.arange(len(stays), dtype=jnp.int32)[:, None], stays.shape)
    columns = jnp.broadcast_to(jnp.arange(batch, dtype=jnp.int32), stays.shape)
    other_source = jnp.zeros_like(others).at[place, columns].set(others, mode="drop")
    num_others = jnp.sum(stays, axis=0, dtype=jnp.int32)
    used = jnp.concatenate([made, others < num_others[None]])

    def blocks(rows: chex.Array, empty: float) -> chex.Array:
        moved = jnp.concatenate([_moved(rows[:num_nodes], source), _moved(rows[num_nodes:], other_source)])
        return jnp.where(used.reshape(*used.shape, *[1] * (rows.ndim - 2)), moved, jnp.asarray(empty, rows.dtype))

    def renumbered(block: chex.Array) -> chex.Array:
        new_block = num_nodes + jnp.take_along_axis(place, jnp.maximum(block - num_nodes, 0), axis=0)
        return jnp.where(block == 0, 0, new_block)

    first, *rest = edges.features
    return Chain(
        child=blocks(child, NO_CHILD),
        features=(blocks(first, -jnp.inf), *(blocks(feature, 0) for feature in rest)),
        upper=None if edges.upper is None else blocks(edges.upper, -1),
        next_block=blocks(renumbered(edges.next_block), 0),
        last_block=_moved(renumbered(edges.last_block), source),
        num_blocks=num_nodes + num_others,
        num_children=jnp.where(made, _moved(edges.num_children, source), 0),
        untried_slot=_moved(edges.untried_slot, source),
        untried_prior=_moved(edges.untried_prior, source),
        untried_mass=None if edges.untried_mass is None else _moved(edges.untried_mass, source),
    )


def go_on(tree: Tree, fresh: Tree, selection: Selection) -> Tree:
    """`tree` with the root priors of `fresh`, and `fresh` itself where the root is another position.

    Raises:
      ValueError: trees of different shapes.
    """
    shapes = [jax.tree.map(lambda array: array.shape, dataclasses.replace(t, histories=None)) for t in (tree, fresh)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"tree has {tree.max_nodes} nodes for {tree.batch} games of {tree.num_slots} slots, "
            f"the search needs {fresh.max_nodes} for {fresh.batch} of {fresh.num_slots}, with the same options"
        )
    again = jnp.any(tree.positions[ROOT] != fresh.positions[ROOT], axis=1) | (tree.sums[ROOT, :, VISITS] == 0)

    def row(new: chex.Array, old: chex.Array) -> chex.Array:
        if not new.ndim:  # `num_made`, of all
            return new
        axis = min(new.ndim - 1, 1)  # of the trees; a count of blocks has no other
        return jnp.where(again.reshape(*[1] * axis, -1, *[1] * (new.ndim - axis - 1)), new, old)

    num_made = jnp.max(jnp.where(again, 1, tree.num_made))
    fresh_rows, rows = (dataclasses.replace(t, histories=None, num_made=num_made) for t in (fresh, tree))
    # Trees are large: they are read as a whole only where one begins anew.
    rows = jax.lax.cond(jnp.any(again), lambda: jax.tree.map(row, fresh_rows, rows), lambda: rows)
    merged = dataclasses.replace(rows, histories=fresh.histories, num_made=num_made)
    return _with_root_prior(merged, fresh.prior[ROOT], selection)


def _with_root_prior(tree: Tree, prior: chex.Array, selection: Selection) -> Tree:
    """The trees with `prior` [B, K] at their roots."""
    slot = tree.links[..., SLOT]
    nodes = jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None]
    below_root = (tree.visits > 0) & (nodes > ROOT) & (tree.links[..., PARENT] == ROOT)
    own = jnp.take_along_axis(prior, slot.T, axis=1).T
    facts = tree.facts.at[..., PRIOR].set(jnp.where(below_root, own, tree.facts[..., PRIOR]))
    visits, q = root_statistics(tree)
    edges: Edges
    if isinstance(tree.edges, Table):
        untried = prior
        edges = tree.edges.with_root_prior(selection, prior, visits.astype(jnp.float32), q)
    else:
        untried = jnp.where(visits > 0, -1.0, prior)
        best_slot, best_prior = best_untried(untried.T)
        mass = tree.edges.untried_mass
        edges = dataclasses.replace(
            tree.edges.with_root_prior(selection, prior, slot, tree.sums),
            untried_slot=tree.edges.untried_slot.at[ROOT].set(best_slot),
            untried_prior=tree.edges.untried_prior.at[ROOT].set(best_prior),
            untried_mass=None if mass is None else mass.at[ROOT].set(jnp.sum(jnp.maximum(untried, 0), axis=1)),
        )
    return dataclasses.replace(tree, facts=facts, prior=tree.prior.at[ROOT].set(untried), edges=edges)
