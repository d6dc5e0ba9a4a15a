"""The optimiser step, and what it changes. Axis letters: `B` batch."""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game
from azjax.networks import Network, Variables
from azjax.training.config import Config, Hyper
from azjax.training.loss import loss
from azjax.training.replay import Replay, count_known, sample


class SkippedUpdates(NamedTuple):
    """Optimiser steps that were left out, since the loss or its gradient was not finite.

    in_a_row: int32 []; up to now.
    key: uint32 [2]; the bits of the key of the last one, from which its batch was drawn.
    """

    in_a_row: chex.Array
    key: chex.Array


@pytree_dataclass
class Learner:
    """What an optimiser step changes.

    variables: the network's.
    averaged: the running average of all that `variables` were, see `Hyper.average_decay`.
    optimiser_state: Optax's.
    skipped: see `SkippedUpdates`.
    """

    variables: Variables
    averaged: Variables
    optimiser_state: optax.OptState
    skipped: SkippedUpdates

    @classmethod
    def begin(cls, config: Config, hyper: Hyper, variables: Variables) -> "Learner":
        """Before the first step."""
        optimiser_state = optimiser(config, hyper).init(variables["params"])
        # Copies: what is donated must not be given twice.
        averaged = jax.tree.map(jnp.copy, variables)
        return cls(variables, averaged, optimiser_state, SkippedUpdates(jnp.int32(0), jnp.zeros(2, jnp.uint32)))


def optimiser(config: Config, hyper: Hyper) -> optax.GradientTransformation:
    """Adam behind a limit on the gradient's norm; its state has the same shape for all `hyper`."""
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_gradient_norm),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(functools.partial(learning_rate, config, hyper)),
    )


def learning_rate(config: Config, hyper: Hyper, count: chex.Array) -> chex.Array:
    """float32 []: of the optimiser step after `count` others: up from 0, then down along half a cosine."""
    rate = jnp.asarray(hyper.learning_rate, jnp.float32)
    if config.decay_updates:
        share = optax.cosine_decay_schedule(1.0, config.decay_updates)(jnp.maximum(count - config.warmup_updates, 0))
        rate = hyper.final_learning_rate + (hyper.learning_rate - hyper.final_learning_rate) * share
    if config.warmup_updates:
        rate = rate * jnp.minimum((count + 1) / config.warmup_updates, 1.0)
    return rate


def update(
    learner: Learner,
    config: Config,
    hyper: Hyper,
    game: Game,
    network: Network,
    replay: Replay,
    known_so_far: chex.Array,
    key: chex.PRNGKey,
    mesh: Mesh | None = None,
) -> tuple[Learner, dict[str, chex.Array]]:
    """One optimiser step on a batch of the replay, which is skipped where its gradient is not finite.

    With a `mesh` the batch is split, and the compiler adds up what its devices find.

    Returns:
      the learner after it, and metrics.
    """
    sample_key, symmetry_key = jax.random.split(key)
    examples = sample(replay, known_so_far, sample_key, config.batch_size, mesh)
    variables = learner.variables
    params = variables["params"]
    gradient_of = jax.value_and_grad(loss, has_aux=True)
    (total, (batch_stats, metrics)), gradient = gradient_of(
        params, variables["batch_stats"], config, hyper, game, network, symmetry_key, examples
    )
    norm = optax.tree.norm(gradient)
    updates, optimiser_state = optimiser(config, hyper).update(gradient, learner.optimiser_state, params)
    variables = {"params": optax.apply_updates(params, updates), "batch_stats": batch_stats}
    averaged = optax.incremental_update(variables, learner.averaged, 1 - hyper.average_decay)
    following = learner.variables, learner.averaged, learner.optimiser_state
    # The norm may be infinite where the gradient is not: such a step is skipped too.
    finite = jnp.isfinite(total) & jnp.isfinite(norm)
    variables, averaged, optimiser_state = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), (variables, averaged, optimiser_state), following
    )
    skipped = SkippedUpdates(
        in_a_row=jnp.where(finite, 0, learner.skipped.in_a_row + 1),
        key=jnp.where(finite, learner.skipped.key, jax.random.key_data(key)),
    )
    metrics = {"loss": total, **metrics, "gradient_norm": norm, "skipped_updates": 1.0 - finite}
    return Learner(variables, averaged, optimiser_state, skipped), metrics


def skipped_batch(learner: Learner, config: Config, replay: Replay) -> dict[str, chex.Array]:
    """The key of the last step that was skipped, uint32 [2], and its batch, every leaf [B, ...] by its name.

    They are right as long as nothing was inserted into `replay` since.
    """
    sample_key, _ = jax.random.split(jax.random.wrap_key_data(learner.skipped.key))
    examples = sample(replay, count_known(replay), sample_key, config.batch_size)
    leaves = jax.tree_util.tree_leaves_with_path(examples)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
    return {"key": learner.skipped.key, **named}
