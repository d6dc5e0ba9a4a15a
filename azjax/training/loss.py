"""The loss and one optimiser step. Axis letters: `B` batch, `K` slots of legal actions, `A` actions, `S` symmetries."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from azjax.games.game import Game
from azjax.networks import Network, Variables
from azjax.training.config import Hyper
from azjax.training.replay import Examples


def optimiser(hyper: Hyper) -> optax.GradientTransformation:
    """Adam; its state has the same shape at every learning rate."""
    return optax.adam(hyper.learning_rate)


def random_symmetry(game: Game, key: chex.PRNGKey, states: Any) -> tuple[Any, chex.Array, chex.Array]:
    """One symmetry of each state, drawn evenly.

    Returns:
      states: [B, ...], turned.
      actions: int32 [B, K]; where the action of each slot of the state given went.
      valid: bool [B, K].
    """
    actions, valid = jax.vmap(game.legal_slots)(states)
    turned, permutation = jax.vmap(game.symmetries)(states)
    batch, num_symmetries, _ = permutation.shape
    rows = jnp.arange(batch)
    choice = jax.random.randint(key, (batch,), 0, num_symmetries)
    states = jax.tree.map(lambda leaf: leaf[rows, choice], turned)
    return states, jnp.take_along_axis(permutation[rows, choice], actions, axis=1), valid


def loss(
    params: Any, batch_stats: Any, hyper: Hyper, game: Game, network: Network, key: chex.PRNGKey, examples: Examples
) -> tuple[chex.Array, tuple[Any, dict[str, chex.Array]]]:
    """(z - v)^2 - pi . log p + c |theta|^2, Silver et al. 2017, equation 1, p over the legal actions.

    Returns:
      the loss, and (new batch_stats, metrics: `value_loss`, `policy_loss` and the entropy of its target).
    """
    states, actions, valid = random_symmetry(game, key, examples.states)
    observations = jax.vmap(game.observe)(states)
    logits, value, new = network.apply({"params": params, "batch_stats": batch_stats}, observations, train=True)
    logits = jnp.where(valid, jnp.take_along_axis(logits, actions, axis=1), -jnp.inf)
    log_policy = jnp.where(valid, jax.nn.log_softmax(logits, axis=1), 0.0)
    policy_loss = -jnp.mean(jnp.sum(examples.policy * log_policy, axis=1))
    value_loss = jnp.mean((examples.outcome - value) ** 2)
    squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
    entropy = jnp.mean(jnp.sum(jax.scipy.special.entr(examples.policy), axis=1))
    metrics = {"value_loss": value_loss, "policy_loss": policy_loss, "target_entropy": entropy}
    return value_loss + policy_loss + hyper.l2 * squares, (new["batch_stats"], metrics)


def update(
    variables: Variables,
    optimiser_state: optax.OptState,
    hyper: Hyper,
    game: Game,
    network: Network,
    key: chex.PRNGKey,
    examples: Examples,
) -> tuple[Variables, optax.OptState, dict[str, chex.Array]]:
    """One optimiser step on `examples`. Returns new variables, optimiser state and metrics."""
    params = variables["params"]
    gradient_of = jax.value_and_grad(loss, has_aux=True)
    (total, (batch_stats, metrics)), gradient = gradient_of(
        params, variables["batch_stats"], hyper, game, network, key, examples
    )
    updates, optimiser_state = optimiser(hyper).update(gradient, optimiser_state, params)
    params = optax.apply_updates(params, updates)
    return {"params": params, "batch_stats": batch_stats}, optimiser_state, {"loss": total, **metrics}
