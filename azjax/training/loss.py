"""The loss. Axis letters: `B` batch, `K` slots of legal actions, `A` actions, `S` symmetries."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game
from azjax.networks import Network
from azjax.training.config import Config, Hyper
from azjax.training.replay import Examples


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


def value_target(hyper: Hyper, examples: Examples) -> chex.Array:
    """float32 [B]: the game's result mixed with the search's value, or the true value where the search proved it."""
    fraction = hyper.root_value_fraction
    mixed = (1 - fraction) * examples.outcome + fraction * examples.value
    return jnp.where(examples.proven, examples.value, mixed)


def loss(
    params: Any,
    batch_stats: Any,
    config: Config,
    hyper: Hyper,
    game: Game,
    network: Network,
    key: chex.PRNGKey,
    examples: Examples,
) -> tuple[chex.Array, tuple[Any, dict[str, chex.Array]]]:
    """(z - v)^2 - pi . log p + c |theta|^2, Silver et al. 2017, equation 1, p over the legal actions.

    z is `value_target`.

    Returns:
      the loss, and (new batch_stats, metrics: `value_loss`, `policy_loss`, the entropy of its target, and how often the
        likeliest action and the nearest of loss, draw and win are those of the targets).
    """
    if config.symmetries:
        states, actions, valid = random_symmetry(game, key, examples.states)
    else:
        states, (actions, valid) = examples.states, jax.vmap(game.legal_slots)(examples.states)
    observations = jax.vmap(game.observe)(states)
    logits, value, new = network.apply({"params": params, "batch_stats": batch_stats}, observations, train=True)
    logits = jnp.where(valid, jnp.take_along_axis(logits, actions, axis=1), -jnp.inf)
    log_policy = jnp.where(valid, jax.nn.log_softmax(logits, axis=1), 0.0)
    policy_loss = -jnp.mean(jnp.sum(examples.policy * log_policy, axis=1))
    target = value_target(hyper, examples)
    value_loss = jnp.mean((target - value) ** 2)
    squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
    entropy = jnp.mean(jnp.sum(jax.scipy.special.entr(examples.policy), axis=1))
    likeliest = jnp.take_along_axis(examples.policy, jnp.argmax(logits, axis=1)[:, None], axis=1)[:, 0]
    metrics = {
        "value_loss": value_loss,
        "policy_loss": policy_loss,
        "target_entropy": entropy,
        "policy_accuracy": jnp.mean(likeliest == jnp.max(examples.policy, axis=1)),
        "value_accuracy": jnp.mean(jnp.round(value) == jnp.round(target)),
    }
    return value_loss + policy_loss + hyper.l2 * squares, (new["batch_stats"], metrics)
