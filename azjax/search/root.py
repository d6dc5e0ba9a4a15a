"""Where a search begins. Axis letters: see `tree.py`."""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from azjax.core.packing import Packing
from azjax.games.protocols import earlier_positions, without_history
from azjax.games.repetition import History
from azjax.search.dynamics import GameDynamics, Judgement
from azjax.search.edges import edges_for
from azjax.search.lanes import legal_softmax, room
from azjax.search.selection import Selection
from azjax.search.tree import ROOT, Tree


class Root(NamedTuple):
    """Positions to search from.

    histories: of their games, every leaf [B, ...]; None for a game in which all positions may come back.
    keys: uint32 [B, 2]; of the positions; None where `histories` is.
    positions: the states without their history, every leaf [B, ...].
    terminated: bool [B]; the roots that have nothing below them.
    prior: float32 [B, K]; probabilities over the legal slots, -1 in holes.
    judgement: see `Judgement`.
    """

    histories: History | None
    keys: chex.Array | None
    positions: Any
    terminated: chex.Array
    prior: chex.Array
    judgement: Judgement


def judge_root(dynamics: GameDynamics, params: Any, key: chex.PRNGKey, states: Any) -> Root:
    """Judges the states [B, ...] that a search starts from."""
    judgement = dynamics.judge(params, key, states)
    prior = legal_softmax(judgement.logits).T
    game = dynamics.game
    histories, positions = (
        jax.vmap(functools.partial(earlier_positions, game))(states),
        jax.vmap(functools.partial(without_history, game))(states),
    )
    keys = None if histories is None else jax.vmap(game.position_key)(states)
    return Root(histories, keys, positions, states.terminated, prior, judgement)


def new_tree(
    root: Root,
    selection: Selection,
    max_nodes: int,
    *,
    leaves_per_step: int = 1,
    solver: bool = False,
    counts_decided: bool = False,
) -> Tree:
    """Trees that hold their roots alone.

    Args:
      root: the positions.
      selection: the rule of selection.
      max_nodes: for so many there is room, with the root.
      leaves_per_step: of the search; N has so many rows more, which a full tree writes to.
      solver: keep `Tree.bounds`.
      counts_decided: keep `Tree.decided`.
    """
    batch, slots = root.prior.shape
    judgement = root.judgement
    num_nodes = max_nodes + leaves_per_step

    ones, zeros = jnp.ones(batch, jnp.float32), jnp.zeros(batch, jnp.int32)
    value, discount = jnp.where(root.terminated, 0.0, judgement.value), jnp.where(root.terminated, 0.0, 1.0)
    packing = Packing.of(root.positions)
    return Tree(
        histories=root.histories,
        keys=None if root.keys is None else room(num_nodes, root.keys),
        positions=room(num_nodes, packing.pack(root.positions)),
        sums=jnp.zeros((num_nodes, batch, 2), jnp.float32).at[ROOT].set(jnp.stack([ones, value], axis=1)),
        facts=room(num_nodes, jnp.stack([0 * ones, discount, ones], axis=1)),
        links=room(num_nodes, jnp.stack([zeros, zeros], axis=1)),
        prior=room(num_nodes, root.prior),
        actions=None if judgement.actions is None else room(num_nodes, judgement.actions),
        edges=edges_for(selection, root.prior, num_nodes, solver),
        decided=jnp.zeros((num_nodes, batch), jnp.float32) if counts_decided else None,
        bounds=room(num_nodes, new_bounds(root.terminated)) if solver else None,
        num_made=jnp.int32(1),
        packing=packing,
        max_nodes=max_nodes,
        num_nodes=num_nodes,
        batch=batch,
        num_slots=slots,
    )


def new_bounds(terminated: chex.Array) -> chex.Array:
    """float32 [B, 2]: what is known of the values of new nodes: all after the end, nothing before."""
    bound = jnp.where(terminated, 0.0, 1.0)
    return jnp.stack([-bound, bound], axis=1)
