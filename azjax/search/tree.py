"""The arrays of a batch of search trees, and what a search returns.

Axis letters: `B` batch (one tree a row), `N` nodes of a tree, `K` slots of the compact table of legal actions,
`A` actions. Arrays are node-major: node i + 1 is made by simulation i in all trees at once, so its row is one
contiguous write.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game, History, state_dataclass

ROOT = 0
UNVISITED = 0  # in `Tree.children`: the root is nobody's child, so its index is free


@state_dataclass
class Tree:
    """B search trees of N nodes each. Statistics stand on the child node, not on the edge to it.

    histories: of the roots' games, every leaf [B, ...]; None for a game in which all positions may come back.
    states: the position of each node, without its history; every leaf [N, B, ...].
    visits: int32 [N, B]; simulations that passed through the node (the root's own evaluation counts as one).
      A node that was never made has 0.
    returns: float32 [N, B]; sum over the visits of `reward + discount * value`, seen by the player who moved
      into the node. The root's is seen by its player to move.
    reward: float32 [N, B]; reward of the step into the node, of the player who made it.
    discount: float32 [N, B]; -1 where the other player moves at the node, +1 where the same one moves on,
      0 where the game is over.
    children: int32 [N, B, K]; node of each slot, `UNVISITED` where there is none yet.
    prior: float32 [N, B, K]; probabilities over the legal slots, -1 in holes.
    actions: int32 [N, B, K]; action of each slot; None where K == A, since slot a is action a there.
    """

    histories: History | None
    states: Any
    visits: chex.Array
    returns: chex.Array
    reward: chex.Array
    discount: chex.Array
    children: chex.Array
    prior: chex.Array
    actions: chex.Array | None


@state_dataclass
class SearchResult:
    """What a search found. Values are seen by the player to move.

    action: int32 [B]; the move to play.
    policy: float32 [B, A]; the training target; sums to one over the legal actions, zero after the end.
    value: float32 [B]; mean value of the root, in -1..1.
    visits: int32 [B, A]; of the root's actions; they sum to the number of simulations.
    q_values: float32 [B, A]; mean return of each action, 0 where it was not visited.
    tree: the search trees.
    """

    action: chex.Array
    policy: chex.Array
    value: chex.Array
    visits: chex.Array
    q_values: chex.Array
    tree: Tree


def legal_slots(game: Game, states: Any) -> tuple[chex.Array | None, chex.Array]:
    """The games' compact tables: actions int32 [B, K] (None where slot a is action a), valid bool [B, K]."""
    if game.max_legal_actions == game.num_actions:
        return None, jax.vmap(game.legal_action_mask)(states)
    return jax.vmap(game.legal_slots)(states)


def to_slots(values: chex.Array, actions: chex.Array | None) -> chex.Array:
    """[B, A] by action -> [B, K] by slot."""
    return values if actions is None else jnp.take_along_axis(values, actions, axis=1)


def to_actions(game: Game, values: chex.Array, actions: chex.Array | None) -> chex.Array:
    """[B, K] by slot -> [B, A] by action; holes must hold zero."""
    if actions is None:
        return values
    rows = jnp.arange(len(values))[:, None]
    return jnp.zeros((len(values), game.num_actions), values.dtype).at[rows, actions].add(values)


def new_tree(game: Game, states: Any, actions: chex.Array | None, prior: chex.Array, value: chex.Array, num_nodes: int):
    """Trees that hold their roots alone, evaluated as `prior` [B, K] and `value` [B]."""

    def with_root(leaf: chex.Array, fill: Any = 0) -> chex.Array:
        return jnp.full((num_nodes, *leaf.shape), fill, leaf.dtype).at[ROOT].set(leaf)

    batch, slots = prior.shape
    return Tree(
        histories=jax.vmap(game.earlier_positions)(states),
        states=jax.tree.map(with_root, jax.vmap(game.without_history)(states)),
        visits=with_root(jnp.ones(batch, jnp.int32)),
        returns=with_root(value),
        reward=jnp.zeros((num_nodes, batch), jnp.float32),
        discount=with_root(jnp.where(states.terminated, 0.0, 1.0)),
        children=jnp.full((num_nodes, batch, slots), UNVISITED, jnp.int32),
        prior=with_root(prior),
        actions=None if actions is None else with_root(actions),
    )
