"""Trees that are kept from move to move. Axis letters: see `tree.py`."""

import dataclasses
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float32, Int, Int32, PyTree, Real, Shaped

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.search.dynamics import Evaluator, GameDynamics, evaluate_root
from azjax.search.edges import take_rows
from azjax.search.forced_playouts import puct
from azjax.search.selection import Selection
from azjax.search.tree import (
    DISCOUNT,
    PARENT,
    PRIOR,
    RETURNS,
    REWARD,
    ROOT,
    SLOT,
    VISITS,
    Tree,
    new_tree,
    root_statistics,
)

_Numbers: TypeAlias = tuple[Int32[Array, "N B"], Int32[Array, "N B"], Int32[Array, "B"]]
"""source, number, count: the old number of each new node, the new number of each old node (-1 where it is dropped), and
how many nodes remain."""


@jax.jit
def advance(tree: Tree, action: Int[Array, "B"]) -> Tree:
    """The trees below `action`, with the same capacity; empty where the search never tried it.

    Hand them to a policy with the states after the action.
    """
    tree = _renumber(tree, *_numbers_below(tree, _child_of_root(tree, action)))
    # The root is seen by its own player, and nothing leads to it.
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
    """The same trees without unused rows between their nodes.

    Simulations make their nodes in all trees at once. So a tree has unused rows if it was begun after others or its
    simulations ended at finished games; without them it has capacity again.
    """
    made = tree.visits > 0
    nodes = jnp.broadcast_to(jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None], made.shape)
    number = jnp.where(made, jnp.cumsum(made, axis=0, dtype=jnp.int32) - 1, -1)
    row, columns = jnp.where(made, number, tree.num_nodes), jnp.arange(tree.batch, dtype=jnp.int32)[None]
    source = jnp.full_like(nodes, -1).at[row, columns].set(nodes, mode="drop")
    return _renumber(tree, source, number, jnp.sum(made, axis=0, dtype=jnp.int32))


def continue_tree(tree: Tree, fresh: Tree, selection: Selection) -> Tree:
    """`tree` with the root priors of `fresh`, and `fresh` itself where the root is another position.

    Raises:
      InputError: trees of different shapes.
    """
    shapes = [jax.tree.map(lambda array: array.shape, dataclasses.replace(t, histories=None)) for t in (tree, fresh)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"tree has {tree.max_nodes} nodes for {tree.batch} games of {tree.num_slots} slots, "
            f"the search needs {fresh.max_nodes} for {fresh.batch} of {fresh.num_slots}, with the same options"
        )
    restarts = jnp.any(tree.positions[ROOT] != fresh.positions[ROOT], axis=1) | (tree.sums[ROOT, :, VISITS] == 0)

    def row(new: Shaped[Array, "..."], old: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        if not new.ndim:  # `num_made`
            return new
        axis = min(new.ndim - 1, 1)  # B; `num_blocks` has no other axis
        return jnp.where(restarts.reshape(*[1] * axis, -1, *[1] * (new.ndim - axis - 1)), new, old)

    num_made = jnp.max(jnp.where(restarts, 1, tree.num_made))
    fresh_rows, rows = (dataclasses.replace(t, histories=None, num_made=num_made) for t in (fresh, tree))
    # Trees are large: they are read as a whole only if one of them restarts.
    rows = jax.lax.cond(jnp.any(restarts), lambda: jax.tree.map(row, fresh_rows, rows), lambda: rows)
    merged = dataclasses.replace(rows, histories=fresh.histories, num_made=num_made)
    return _with_root_prior(merged, fresh.prior[ROOT], selection)


def _with_root_prior(tree: Tree, prior: Float32[Array, "B K"], selection: Selection) -> Tree:
    slot = tree.links[..., SLOT]
    nodes = jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None]
    below_root = (tree.visits > 0) & (nodes > ROOT) & (tree.links[..., PARENT] == ROOT)
    own = jnp.take_along_axis(prior, slot.T, axis=1).T
    facts = tree.facts.at[..., PRIOR].set(jnp.where(below_root, own, tree.facts[..., PRIOR]))
    visits, q = root_statistics(tree)
    edges, row = tree.edges.with_root_prior(selection, prior, visits, q, slot, tree.sums)
    return dataclasses.replace(tree, facts=facts, prior=tree.prior.at[ROOT].set(row), edges=edges)


def _child_of_root(tree: Tree, action: Int[Array, "B"]) -> Int32[Array, "B"]:
    """The roots' children behind `action`; `ROOT` where there is none."""
    if tree.actions is None:
        taken = tree.links[..., SLOT]
    else:
        taken = jnp.take_along_axis(tree.actions[ROOT], tree.links[..., SLOT].T, axis=1).T
    nodes = jnp.arange(tree.num_nodes, dtype=jnp.int32)[:, None]
    matches = (tree.visits > 0) & (nodes > ROOT) & (tree.links[..., PARENT] == ROOT) & (taken == action[None])
    return jnp.max(jnp.where(matches, nodes, ROOT), axis=0)


def _numbers_below(tree: Tree, root: Int32[Array, "B"]) -> _Numbers:
    """Numbers for the nodes from `root` down. Nodes keep their order, so that one pass over them suffices."""
    batch = jnp.arange(tree.batch, dtype=jnp.int32)
    parents, made = tree.links[..., PARENT], tree.visits > 0

    def number_node(node: Int32[Array, ""], carry: _Numbers) -> _Numbers:
        source, number, count = carry
        is_root = (node == root) & (root > ROOT)
        stays = is_root | (made[node] & (number[parents[node], batch] >= 0))
        new = jnp.where(stays, count, -1)
        source = source.at[jnp.where(stays, count, tree.num_nodes), batch].set(node, mode="drop")
        return source, number.at[node].set(new), count + stays

    dropped = jnp.full((tree.num_nodes, tree.batch), -1, jnp.int32)
    begin = jnp.zeros_like(dropped), dropped, jnp.zeros(tree.batch, jnp.int32)
    return cast(_Numbers, jax.lax.fori_loop(1, tree.num_nodes, number_node, begin))


def _renumber(tree: Tree, source: Int32[Array, "N B"], number: Int32[Array, "N B"], count: Int32[Array, "B"]) -> Tree:
    """The trees with other numbers for their nodes; see `_Numbers`."""

    def moved(rows: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        return take_rows(rows, source)

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
        edges=tree.edges.renumber(source, number, made),
        decided=None if tree.decided is None else jnp.where(made, moved(tree.decided), 0.0),
        bounds=None if tree.bounds is None else moved(tree.bounds),
        num_made=jnp.max(count),
    )


# Trees that a player or self-play keeps for each of its games.


def max_nodes(num_simulations: int) -> int:
    """Capacity of a tree that is kept: for the next search, and twice as much for what remains of earlier ones."""
    return 3 * num_simulations + 1


def empty_tree(
    game: AnyGame,
    evaluator: Evaluator,
    params: PyTree,
    states: State,
    *,
    num_simulations: int,
    leaves_per_step: int = 1,
    solver: bool = False,
    forced_playouts: Real[ArrayLike, ""] | None = None,
) -> Tree:
    """Trees for `alphazero_policy` without any node, so that its search of the states [B, ...] starts new ones."""

    def begin() -> Tree:
        root = evaluate_root(GameDynamics(game, evaluator), params, jax.random.key(0), states)
        rule, capacity = puct(0.0, forced_playouts=forced_playouts), max_nodes(num_simulations)
        tree = new_tree(root, rule, capacity, leaves_per_step=leaves_per_step, solver=solver)
        return dataclasses.replace(tree, histories=None)

    return cast(Tree, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(begin)))


def follow(tree: Tree, action: Int[Array | np.ndarray, "B"], num_simulations: int) -> Tree:
    """The trees below `action`, empty where their capacity does not suffice for the next search.

    Simulations make their nodes in all trees at once, so one tree that is nearly full would stop the others too.
    """
    tree = cast(Tree, advance(tree, action))
    num_made = jnp.sum(tree.visits > 0, axis=0)
    kept = num_made + num_simulations <= tree.max_nodes
    return dataclasses.replace(
        tree,
        histories=None,  # the next states bring theirs
        sums=jnp.where(kept[:, None], tree.sums, 0.0),
        num_made=jnp.max(jnp.where(kept, num_made, 0)),
    )


def by_game(tree: Tree) -> Tree:
    """The trees with every leaf [B, ...], so that games can be taken and put by their number."""
    leaves: Tree = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0) if leaf.ndim > 1 else leaf, tree)
    return dataclasses.replace(leaves, num_made=jnp.broadcast_to(tree.num_made, tree.batch), batch=1)


def by_node(trees: Tree) -> Tree:
    """The inverse of `by_game`, for any games side by side."""
    leaves: Tree = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1) if leaf.ndim > 1 else leaf, trees)
    return dataclasses.replace(leaves, num_made=jnp.max(trees.num_made), batch=len(trees.num_made))
