"""The optimizer step, and the state that it changes. Axis letters: `B` batch, `RG` positions of the replay."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Float32, Int32, PRNGKeyArray, UInt32

from azjax.core.pytree import pytree_dataclass
from azjax.games.game import AnyGame
from azjax.networks import Network, Variables
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm, Metrics, join_metrics, loss
from azjax.training.muon import muon
from azjax.training.replay import Replay, sample, weigh_ready


@pytree_dataclass
class SkippedUpdates:
    """Optimizer steps that were skipped because the loss or its gradient was not finite.

    Attributes:
      in_a_row: how many up to now.
      key: the bits of the key of the last one, which drew its batch.
    """

    in_a_row: Int32[Array, ""]
    key: UInt32[Array, "2"]


@pytree_dataclass
class Learner:
    """What an optimizer step changes.

    Attributes:
      variables: of the network.
      ema: the exponential moving average of `variables` after each step; see `Hyper.ema_decay`.
      optimizer_state: of Optax.
      skipped: see `SkippedUpdates`.
    """

    variables: Variables
    ema: Variables
    optimizer_state: optax.OptState
    skipped: SkippedUpdates

    @classmethod
    def init(cls, config: Config, hyper: Hyper, variables: Variables) -> "Learner":
        """The state before the first step."""
        optimizer_state = optimizer(config, hyper).init(variables["params"])
        # A copy, since the same array cannot be donated twice.
        ema = jax.tree.map(jnp.copy, variables)
        return cls(variables, ema, optimizer_state, SkippedUpdates(jnp.int32(0), jnp.zeros(2, jnp.uint32)))


def optimizer(config: Config, hyper: Hyper) -> optax.GradientTransformation:
    """The optimizer after a limit on the gradient's norm. Its state has the same shape for all `hyper`.

    See `azjax.training.muon` for Muon.
    """
    rate = functools.partial(learning_rate, config, hyper)
    limit = optax.clip_by_global_norm(hyper.max_gradient_norm)
    if config.optimizer == "muon":
        return optax.chain(limit, muon(rate, config.settled_precision))
    return optax.chain(limit, optax.scale_by_adam(), optax.scale_by_learning_rate(rate))


def learning_rate(config: Config, hyper: Hyper, count: Int32[Array, ""]) -> Float32[Array, ""]:
    """The learning rate of the optimizer step after `count` others: it rises from 0, then falls along a cosine."""
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
    game: AnyGame,
    network: Network,
    replay: Replay,
    weight_so_far: Int32[Array, "RG"],
    key: PRNGKeyArray,
    mesh: Mesh | None = None,
    terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS,
) -> tuple[Learner, Metrics]:
    """One optimizer step on a batch of the replay, skipped if the loss or its gradient is not finite.

    With a `mesh` the batch is split over its devices, and the compiler adds up their gradients.

    Returns:
      the learner after it, and metrics.
    """
    sample_key, symmetry_key = jax.random.split(key)
    with_following = any(term.following for term in terms)
    examples = sample(replay, weight_so_far, sample_key, config.batch_size, mesh, with_following=with_following)
    params = learner.variables["params"]
    rest = {name: collection for name, collection in learner.variables.items() if name != "params"}
    (total, (rest, metrics)), gradient = jax.value_and_grad(loss, has_aux=True)(
        params, rest, config, hyper, game, network, symmetry_key, examples, terms
    )
    norm = optax.tree.norm(gradient)
    updates, optimizer_state = optimizer(config, hyper).update(gradient, learner.optimizer_state, params)
    variables = {"params": optax.apply_updates(params, updates), **rest}
    ema = _average(variables, learner.ema, _ema_step(hyper, optimizer_state))
    # Not by `optax.apply_if_finite`: it checks the elements of the gradient, not the loss or a norm that overflows, and
    # does not restore the EMA and the other collections. Its branch would also keep XLA from fusing Adam with the rest.
    finite = jnp.isfinite(total) & jnp.isfinite(norm)
    after = Learner(variables, ema, optimizer_state, SkippedUpdates(jnp.int32(0), learner.skipped.key))
    skipped = SkippedUpdates(learner.skipped.in_a_row + 1, jax.random.key_data(key))
    before = Learner(learner.variables, learner.ema, learner.optimizer_state, skipped)
    learner = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, before)
    own = {"loss": total, "gradient_norm": norm, "skipped_updates": 1.0 - finite}
    return learner, join_metrics(own, metrics)


def _average(variables: Variables, ema: Variables, step: Float32[Array, ""]) -> Variables:
    """The average with this share of the newest variables; whole numbers, such as counters, are the newest."""

    def average(new: Array, old: Array) -> Array:
        return step * new + (1 - step) * old if jnp.issubdtype(new.dtype, jnp.inexact) else new

    averaged: Variables = jax.tree.map(average, variables, ema)
    return averaged


def _ema_step(hyper: Hyper, optimizer_state: optax.OptState) -> Float32[Array, ""]:
    """The share of the newest weights in their average, which has no share of the untrained ones.

    It is the decaying average with its bias corrected (Kingma and Ba 2015, "Adam", section 3), as a running mean.
    """
    taken: Int32[Array, ""] = optax.tree.get_all_with_path(optimizer_state, "count")[0][1]  # all counts are equal
    step: Float32[Array, ""] = (1 - hyper.ema_decay) / (1 - hyper.ema_decay**taken)
    return step


def skipped_batch(learner: Learner, config: Config, replay: Replay) -> dict[str, Array]:
    """The key of the last skipped step, uint32 [2], and its batch, every leaf [B, ...] by its name.

    They are right as long as nothing was inserted into `replay` since.
    """
    sample_key, _ = jax.random.split(jax.random.wrap_key_data(learner.skipped.key))
    examples = sample(replay, weigh_ready(replay), sample_key, config.batch_size)
    leaves = jax.tree_util.tree_leaves_with_path(examples)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
    return {"key": learner.skipped.key, **named}
