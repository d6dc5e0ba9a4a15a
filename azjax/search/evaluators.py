"""What judges a new leaf. Each function here makes an evaluator: see `azjax.search.dynamics.Evaluator`.

They are cached: equal arguments give the same evaluator, so that one compilation serves.
"""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game, random_legal_action
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

    def play_on(key: chex.PRNGKey, state: Any) -> chex.Array:
        def play(carry: tuple) -> tuple:
            state, total, key = carry
            key, action_key = jax.random.split(key)
            state = game.step(state, random_legal_action(game, action_key, state))
            return state, total + state.rewards, key

        start = (state, jnp.zeros(2), key)
        _, total, _ = jax.lax.while_loop(lambda carry: ~carry[0].terminated, play, start)
        return total[state.current_player]

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params
        batch = states.current_player.shape[0]
        return jnp.zeros((batch, game.num_actions)), jax.vmap(play_on)(jax.random.split(key, batch), states)

    return evaluate


@functools.cache
def random(game: Game) -> Evaluator:
    """Priors and values at random, for timing a search without a network. `params` are not read."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params
        batch = states.current_player.shape[0]
        logits_key, value_key = jax.random.split(key)
        prior_logits = jnp.log(jax.random.uniform(logits_key, (batch, game.num_actions), minval=1e-6))
        return prior_logits, jax.random.uniform(value_key, (batch,), minval=-1.0)

    return evaluate


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
