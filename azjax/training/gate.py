"""The gate: what was learned is kept if it wins a match against what was there before."""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from azjax.evaluation import network_player
from azjax.evaluation.device_match import make_device_match
from azjax.games.game import Game
from azjax.networks import Network, Variables
from azjax.training.config import Config, Hyper
from azjax.training.learner import Learner
from azjax.training.self_play import make_start

Metrics = dict[str, chex.Array]


def through_gate(
    learn: Callable[[Learner, chex.PRNGKey], tuple[Learner, Metrics]],
    match: Callable[[Variables, Variables, chex.PRNGKey], chex.Array],
    old: Learner,
    key: chex.PRNGKey,
    config: Config,
    hyper: Hyper,
) -> tuple[Learner, Metrics]:
    """Learns in rounds, with a match against the network before the first of them after each.

    A round whose score reaches `hyper.gate_threshold` is kept and ends it. So does, without being kept, one that falls
    more than `hyper.gate_tolerance` below the round before, and the last of `config.gate_rounds`; then all is as it
    was.

    Returns:
      the learner, and the metrics of the last round with `gate_rounds`, `gate_score` and `gate_accepted`.
    """

    def goes_on(carry: tuple) -> chex.Array:
        number, _, score, before, _ = carry
        fell = (number > 1) & (score < before - hyper.gate_tolerance)
        return (number < config.gate_rounds) & (score < hyper.gate_threshold) & ~fell

    def one_round(carry: tuple) -> tuple:
        number, learner, before, _, _ = carry
        learn_key, match_key = jax.random.split(jax.random.fold_in(key, number))
        learner, metrics = learn(learner, learn_key)
        score = match(learner.variables, old.variables, match_key)
        return number + 1, learner, score, before, metrics

    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(learn, old, key)[1])
    unknown = jnp.float32(-jnp.inf)
    rounds, learner, score, _, metrics = jax.lax.while_loop(
        goes_on, one_round, (jnp.int32(0), old, unknown, unknown, nothing)
    )
    accepted = score >= hyper.gate_threshold
    learner = jax.tree.map(lambda new, was: jnp.where(accepted, new, was), learner, old)
    told = {"gate_rounds": rounds, "gate_score": score, "gate_accepted": accepted}
    return learner, {**metrics, **{name: value.astype(jnp.float32) for name, value in told.items()}}


def make_match(game: Game, network: Network, config: Config) -> Callable[..., chex.Array]:
    """`match(one, other, key)`: points a game of variables `one`, float32 []; 1 for a win, 1/2 for a draw.

    Both draw their moves from their policies, without a search, in `config.gate_games` games from the starts of
    self-play.
    """
    policy = network_player(game, network, {}, temperature=1.0).policy
    return make_device_match(
        game,
        policy,
        policy,
        num_games=config.gate_games,
        max_plies=config.longest_game(game),
        start=make_start(game, config),
    )
