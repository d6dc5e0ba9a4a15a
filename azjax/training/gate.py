"""The gate: new weights are kept if they win a match against the old ones."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

from azjax.core.pytree import replace_fields
from azjax.evaluation import make_device_match, network_player
from azjax.games.game import AnyGame
from azjax.networks import Network, Variables
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.learner import Learner
from azjax.training.loss import Metrics, join_metrics
from azjax.training.self_play import make_start

Match: TypeAlias = Callable[[Variables, Variables, PRNGKeyArray], Float32[Array, ""]]


def through_gate(
    learn: Callable[[Learner, PRNGKeyArray], tuple[Learner, Metrics]],
    match: Match,
    old: Learner,
    key: PRNGKeyArray,
    config: Config,
    hyper: Hyper,
) -> tuple[Learner, Metrics]:
    """Learns in rounds, each followed by a match against the old network.

    The rounds end with the first whose score reaches `hyper.gate_threshold`; what was learned is then kept. Otherwise
    they end when a score falls by more than `hyper.gate_tolerance` below the one before, or after `config.gate_rounds`,
    and the old learner is returned, with the count of the skipped updates.

    Returns:
      the learner, and the metrics of the last round with `gate_rounds`, `gate_score` and `gate_accepted`;
      `skipped_updates` are those of all rounds.
    """

    def goes_on(carry: tuple[Any, ...]) -> Bool[Array, ""]:
        number, _, score, score_before, _ = carry
        fell = (number > 1) & (score < score_before - hyper.gate_tolerance)
        more: Array = (number < config.gate_rounds) & (score < hyper.gate_threshold) & ~fell
        return more

    def play_round(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        number, learner, score_before, _, before = carry
        learn_key, match_key = jax.random.split(jax.random.fold_in(key, number))
        learner, metrics = learn(learner, learn_key)
        skipped = before["skipped_updates"] + metrics["skipped_updates"]
        score = match(learner.variables, old.variables, match_key)
        return number + 1, learner, score, score_before, {**metrics, "skipped_updates": skipped}

    metrics = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(learn, old, key)[1])
    no_score = jnp.float32(-jnp.inf)
    rounds, learner, score, _, metrics = jax.lax.while_loop(
        goes_on, play_round, (jnp.int32(0), old, no_score, no_score, metrics)
    )
    accepted = score >= hyper.gate_threshold
    kept = jax.tree.map(lambda new, was: jnp.where(accepted, new, was), learner, old)
    kept = replace_fields(kept, skipped=learner.skipped)  # also of what is given up: a run stops at too many in a row
    gate = {"gate_rounds": rounds, "gate_score": score, "gate_accepted": accepted}
    return kept, join_metrics(metrics, {name: value.astype(jnp.float32) for name, value in gate.items()})


def make_match(game: AnyGame, network: Network, config: Config) -> Match:
    """`match(first, second, key)`: points a game of the first variables; 1 for a win, 1/2 for a draw.

    Both draw their moves from their policies, without a search, in `config.gate_games` games from the starts of
    self-play.
    """
    policy = network_player(game, network, {}, temperature=1.0).policy
    play = make_device_match(
        game,
        policy,
        policy,
        num_games=config.gate_games,
        max_plies=game.max_plies,
        start=make_start(game, config),
    )
    return lambda first, second, key: play(first, second, key).score
