"""A search tree that is kept from move to move. Axis letters: see `tree.py`."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game
from azjax.search.dynamics import Evaluator, GameDynamics
from azjax.search.forced_playouts import puct
from azjax.search.reuse import advance
from azjax.search.root import judge_root, new_tree
from azjax.search.tree import Tree


def max_nodes(num_simulations: int) -> int:
    """Room in a tree that is kept: for the next search, and twice as much for what is left of earlier ones."""
    return 3 * num_simulations + 1


def empty_tree(
    game: Game,
    evaluator: Evaluator,
    params: Any,
    states: Any,
    *,
    num_simulations: int,
    leaves_per_step: int = 1,
    solver: bool = False,
    forced_playouts: chex.Numeric | None = None,
) -> Tree:
    """Trees for `alphazero_policy` that hold nothing, so that its search of the states [B, ...] begins anew."""

    def begin() -> Tree:
        root = judge_root(GameDynamics(game, evaluator), params, jax.random.key(0), states)
        rule, room = puct(0.0, forced_playouts=forced_playouts), max_nodes(num_simulations)
        return new_tree(root, rule, room, leaves_per_step=leaves_per_step, solver=solver)

    shapes = dataclasses.replace(jax.eval_shape(begin), histories=None)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def follow(tree: Tree, action: chex.Array, num_simulations: int) -> Tree:
    """The trees below `action` int32 [B], empty where they leave too little room for the next search.

    Simulations make their nodes in all trees at once, so that one tree that is nearly full would stop the others too.
    """
    tree = advance(tree, action)
    num_made = jnp.sum(tree.visits > 0, axis=0)
    kept = num_made + num_simulations <= tree.max_nodes
    return dataclasses.replace(
        tree,
        histories=None,  # those of the next states count
        sums=jnp.where(kept[:, None], tree.sums, 0.0),
        num_made=jnp.max(jnp.where(kept, num_made, 0)),
    )


def by_game(tree: Tree) -> Tree:
    """Trees with every leaf [B, ...], so that games may be taken and put by their number."""
    leaves = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0) if leaf.ndim > 1 else leaf, tree)
    return dataclasses.replace(leaves, num_made=jnp.broadcast_to(tree.num_made, tree.batch), batch=1)


def by_node(trees: Tree) -> Tree:
    """The inverse of `by_game`, of any games side by side."""
    leaves = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1) if leaf.ndim > 1 else leaf, trees)
    return dataclasses.replace(leaves, num_made=jnp.max(trees.num_made), batch=len(trees.num_made))
