"""What judges a new leaf. Each function here makes an evaluator: see `azjax.search.dynamics.Evaluator`.

They are cached: equal arguments give the same evaluator, so that one compilation serves.
"""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.game import Game
from azjax.search.dynamics import Evaluator


@functools.cache
def network(net: Any, game: Game) -> Evaluator:
    """The network `net` (see `azjax.networks`), as at play: `params` are its variables."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del key
        prior_logits, value, _ = net.apply(params, jax.vmap(game.observe)(states), train=False)
        return prior_logits, value

    return evaluate


@functools.cache
def uniform(game: Game) -> Evaluator:
    """Equal priors and the value 0. `params` are not read."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params, key
        batch = states.current_player.shape[0]
        return jnp.zeros((batch, game.num_actions)), jnp.zeros(batch)

    return evaluate


@functools.cache
def rollout(game: Game) -> Evaluator:
    """Equal priors, and the result of one game played on with uniformly random moves. `params` are not read."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params
        batch = states.current_player.shape[0]

        def play(carry: tuple) -> tuple:
            states, total, ply = carry
            bits = jax.random.bits(jax.random.fold_in(key, ply), (batch,))
            # After the end nothing changes, and nothing is paid.
            states = jax.vmap(game.step)(states, jax.vmap(game.sample_legal_action)(states, bits))
            return states, total + states.rewards, ply + 1

        start = states, jnp.zeros((batch, 2)), jnp.int32(0)
        _, total, _ = jax.lax.while_loop(lambda carry: ~jnp.all(carry[0].terminated), play, start)
        value = jnp.where(states.current_player == 0, total[:, 0], total[:, 1])
        return jnp.zeros((batch, game.num_actions)), value

    return evaluate


@functools.cache
def random(game: Game) -> Evaluator:
    """Priors and values at random, for timing a search without a network. `params` are not read."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params
        batch = states.current_player.shape[0]
        # A draw for each position, spread over its actions: a good generator would take longer than the search.
        own = jax.random.bits(key, (batch, 1))
        action = jnp.arange(1, game.num_actions + 1, dtype=jnp.uint32)[None]
        draws = _unit(_spread(own + action * np.uint32(0x9E3779B9)))
        return jnp.log(draws), 2 * _unit(_spread(own))[:, 0] - 1

    return evaluate


def _spread(bits: chex.Array) -> chex.Array:
    """uint32 to uint32: every bit has a say in all of the result's."""
    for places, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        bits = (bits ^ (bits >> np.uint32(places))) * np.uint32(factor)
    return bits


def _unit(bits: chex.Array) -> chex.Array:
    """uint32 to float32 between 0 and 1, of the upper 24 bits."""
    return ((bits >> np.uint32(8)).astype(jnp.float32) + 0.5) / 2**24


@functools.cache
def table(index: Callable[[Any], chex.Array]) -> Evaluator:
    """Looks positions up: `params` are `(prior_logits [M, A], values [M])`, `index(state)` is the row of one state.

    An index that hashes the position makes a fixed pseudo-random evaluator of any game.
    """

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del key
        prior_logits, values = params
        row = jax.vmap(index)(states)
        return prior_logits[row], values[row]

    return evaluate
