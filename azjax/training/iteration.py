"""The iteration: self-play, targets, replay and optimizer steps, as one jitted function of `TrainState`."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Int32, Integer, Key, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.games.game import AnyGame
from azjax.networks import Network, Variables
from azjax.parallel.members import over_members
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, WHOLE, shard
from azjax.training.auxiliary_losses import auxiliary_terms
from azjax.training.config import Config
from azjax.training.gate import make_match, through_gate
from azjax.training.hyper import Hyper
from azjax.training.ladder import Ladder
from azjax.training.learner import Learner, update
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm, Metrics, join_metrics
from azjax.training.reanalysis import reanalyze
from azjax.training.replay import Replay, Steps, insert, new_replay, weigh_ready
from azjax.training.restarts import draw_restarts
from azjax.training.self_play import Games, new_games, self_play

_T = TypeVar("_T")

# What a run adds to the metrics of an iteration.
_OF_A_RUN, _STRENGTH = ("iteration", "mistakes"), ("ladder_", "score_")

# These set keys apart from those that self-play splits off.
_RESTARTS = 0x2E57A275
_REANALYSIS = 0x2EA9A1E5


@pytree_dataclass
class TrainState:
    """The whole state of a run: saved and restored, it continues to the same bit.

    Attributes:
      learner: the network's variables and the state of the optimizer.
      replay: the positions to learn from.
      games: the running games of self-play.
      key: the source of all random numbers from here on.
      iteration: how many iterations were done.
      ladder: None where the configuration asks for no ladder.
    """

    learner: Learner
    replay: Replay
    games: Games
    key: Key[Array, "*P"]
    iteration: Int32[Array, "*P"]
    ladder: Ladder | None

    @property
    def variables(self) -> Variables:
        """The network's variables, which self-play uses."""
        return self.learner.variables

    @property
    def ema(self) -> Variables:
        """The moving average of the variables, with which runs are evaluated and played."""
        return self.learner.ema


def init(
    game: AnyGame, config: Config, seed: int | Integer[Array, ""], hyper: Hyper, network: Network | None = None
) -> TrainState:
    """The state before the first iteration. Pure: `jax.vmap` over (seed, hyper) starts a population.

    Args:
      game: what to learn.
      config: static sizes.
      seed: of all random numbers.
      hyper: traced scalars.
      network: what is trained; that of the configuration if None.
    """
    network_key, start_key, key = jax.random.split(jax.random.key(seed), 3)
    games = new_games(game, config, start_key)
    variables = (network or config.make_network(game)).init(network_key, game)
    return TrainState(
        learner=Learner.init(config, hyper, variables),
        replay=new_replay(game, games.states, config.replay_rows(game), with_surprise=config.surprise_weighting),
        games=games,
        key=key,
        iteration=jnp.int32(0),
        ladder=Ladder.init(variables) if config.ladder_every else None,
    )


def shard_state(mesh: Mesh, state: TrainState) -> TrainState:
    """Puts a state, or the shapes of one, on the devices: games and replay are split, the rest is on each."""

    def shard_leaf(path: tuple[Any, ...], leaf: _T) -> _T:
        match [entry.name for entry in path[:2] if isinstance(entry, jax.tree_util.GetAttrKey)]:
            case ["games", *_]:
                return shard(mesh, BY_GAME, leaf)
            case ["replay", field] if field != "written":
                return shard(mesh, BY_COLUMN, leaf)
        return shard(mesh, WHOLE, leaf)

    sharded: TrainState = jax.tree_util.tree_map_with_path(shard_leaf, state)
    return sharded


def make_iteration(
    game: AnyGame,
    config: Config,
    mesh: Mesh | None = None,
    *,
    network: Network | None = None,
    loss_terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS,
) -> Callable[[TrainState, Hyper], tuple[TrainState, Metrics]]:
    """`iteration(train_state, hyper) -> (train_state, metrics)`, pure; the caller jits it and donates the state.

    Metrics are losses (means over the optimizer steps, NaN where no game has ended yet), how many optimizer steps were
    skipped (in this iteration and in a row up to now), and of the games that ended in this iteration their number,
    results and mean length in plies from where they began (NaN if none ended).

    Args:
      game: what to learn.
      config: static sizes.
      mesh: the devices. The state is then one of `shard_state`, each device plays its own games, and the batch of an
        optimizer step is split.
      network: what is trained; that of the configuration if None.
      loss_terms: what the loss adds up, beside the configuration's auxiliary losses.

    Raises:
      InputError: no terms, or two of one name or with a metric of one name.
    """
    net = network or config.make_network(game)
    terms = (*loss_terms, *auxiliary_terms(config))
    names = [term.name for term in terms]
    if not loss_terms or len({*names}) < len(names):
        raise InputError(f"a loss has one term or more, each with a name of its own; got {', '.join(names) or 'none'}")
    match = make_match(game, net, config)
    config.replay_rows(game)  # refuses a replay that is too small

    def learn_from(
        learner: Learner, replay: Replay, steps: Steps, learn_key: PRNGKeyArray, hyper: Hyper
    ) -> tuple[Learner, Replay, Metrics]:
        replay = insert(replay, steps, config.longest_game(game))
        num_ready, weight_so_far = jnp.sum(replay.ready), weigh_ready(replay)

        def learn(learner: Learner, key: PRNGKeyArray) -> tuple[Learner, Metrics]:
            return update(learner, config, hyper, game, net, replay, weight_so_far, key, mesh, terms)

        def learn_round(learner: Learner, key: PRNGKeyArray) -> tuple[Learner, Metrics]:
            learner, metrics = jax.lax.scan(learn, learner, jax.random.split(key, config.updates_per_iteration))
            skipped = metrics.pop("skipped_updates") > 0
            taken = jnp.sum(~skipped)  # if all were skipped, 0 / 0 is NaN
            means = {name: jnp.sum(jnp.where(skipped, 0.0, each)) / taken for name, each in metrics.items()}
            return learner, {**means, "skipped_updates": jnp.sum(skipped, dtype=jnp.float32)}

        def learn_all(learner: Learner) -> tuple[Learner, Metrics]:
            if not config.gate_games:
                return learn_round(learner, learn_key)
            return through_gate(learn_round, match, learner, learn_key, config, hyper)

        def learn_nothing(learner: Learner) -> tuple[Learner, Metrics]:
            metrics = jax.eval_shape(learn_all, learner)[1]
            nan = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan, leaf.dtype), metrics)
            return learner, {**nan, "skipped_updates": jnp.float32(0)}

        # Until the first game ends there is nothing to learn from.
        learner, metrics = jax.lax.cond(num_ready > 0, learn_all, learn_nothing, learner)
        own = {
            "skipped_in_a_row": learner.skipped.in_a_row.astype(jnp.float32),
            "replay_positions": num_ready.astype(jnp.float32),
        }
        metrics = join_metrics(metrics, own)
        for name in metrics:
            if name in _OF_A_RUN or name.startswith(_STRENGTH):
                raise InputError(f"the metric {name!r} is one of a run: a loss term must name its own another way")
        return learner, replay, metrics

    def iteration(state: TrainState, hyper: Hyper) -> tuple[TrainState, Metrics]:
        play_key, learn_key, next_key = jax.random.split(state.key, 3)
        restarts = draw_restarts(config, hyper, jax.random.fold_in(play_key, _RESTARTS), state.replay, mesh)
        games, steps = self_play(
            game, net, config, state.variables, hyper, state.iteration, play_key, state.games, restarts, mesh
        )
        replay = reanalyze(
            game, net, config, state.variables, hyper, jax.random.fold_in(play_key, _REANALYSIS), state.replay, mesh
        )
        learn = learn_from if mesh is not None else over_members(learn_from)
        learner, replay, metrics = learn(state.learner, replay, steps, learn_key, hyper)
        metrics = join_metrics(metrics, _results(steps, state.games.plies, games.plies))
        return TrainState(learner, replay, games, next_key, state.iteration + 1, state.ladder), metrics

    return iteration


def _results(steps: Steps, plies_before: Int32[Array, "G"], plies_after: Int32[Array, "G"]) -> Metrics:
    """Number, results for player 0 and mean length of the games that ended, and the share of proven plies.

    The result of a game is the sign of the reward of its last ply, as in games that pay at the end alone.

    `plies_before` and `plies_after` are those of the running games.
    """
    decided = steps.ended & ~steps.truncated
    games = jnp.sum(steps.ended)
    counts = {
        "games": games,
        "first_wins": jnp.sum(decided & (steps.reward > 0)),
        "draws": jnp.sum(decided & (steps.reward == 0)),
        "second_wins": jnp.sum(decided & (steps.reward < 0)),
        "truncated_games": jnp.sum(steps.truncated),
    }
    return {
        **{name: count.astype(jnp.float32) for name, count in counts.items()},
        "plies_per_game": jnp.sum(len(steps.ended) + plies_before - plies_after) / games,
        "proven_share": jnp.mean(steps.proven.astype(jnp.float32)),
    }
