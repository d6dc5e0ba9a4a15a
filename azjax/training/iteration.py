"""The iteration: self-play, targets, replay and optimiser steps, as one jitted function of `TrainState`."""

import functools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game
from azjax.networks import Variables
from azjax.parallel.members import over_members
from azjax.parallel.sharding import BY_COLUMN, BY_GAME, WHOLE, place
from azjax.training.config import Config, Hyper
from azjax.training.gate import make_match, through_gate
from azjax.training.ladder import Ladder
from azjax.training.learner import Learner, update
from azjax.training.replay import Replay, Steps, count_known, insert, new_replay
from azjax.training.self_play import Games, new_games, self_play

Metrics = dict[str, chex.Array]


@pytree_dataclass
class TrainState:
    """Everything that a run is: saved and restored, it goes on to the same bit.

    learner: the network's variables, and what learns them.
    replay: the positions to learn from.
    games: the running games of self-play.
    key: the source of all that is random from here on.
    iteration: int32 []; how many were done.
    ladder: how far it has climbed; None where the configuration asks for no ladder.
    """

    learner: Learner
    replay: Replay
    games: Games
    key: chex.PRNGKey
    iteration: chex.Array
    ladder: Ladder | None

    @property
    def variables(self) -> Variables:
        """The network's, as self-play uses them."""
        return self.learner.variables

    @property
    def averaged(self) -> Variables:
        """The network's, as runs are evaluated and played with them."""
        return self.learner.averaged


def init(game: Game, config: Config, seed: chex.Numeric, hyper: Hyper) -> TrainState:
    """The state before the first iteration. Pure: `jax.vmap` over (seed, hyper) begins a population."""
    network_key, start_key, key = jax.random.split(jax.random.key(seed), 3)
    games = new_games(game, config, start_key)
    variables = config.make_network().init(network_key, game)
    return TrainState(
        learner=Learner.begin(config, hyper, variables),
        replay=new_replay(game, games.states, config.replay_rows(game)),
        games=games,
        key=key,
        iteration=jnp.int32(0),
        ladder=Ladder.begin(variables) if config.ladder_every else None,
    )


def place_state(mesh: Mesh, state: TrainState) -> TrainState:
    """A state, or the shapes of one, with its games and their replay split over the devices and the rest on each."""
    whole, by_game, by_column = (functools.partial(place, mesh, spec) for spec in (WHOLE, BY_GAME, BY_COLUMN))
    replay = state.replay
    return TrainState(
        learner=whole(state.learner),
        replay=Replay(
            steps=by_column(replay.steps),
            outcome=by_column(replay.outcome),
            known=by_column(replay.known),
            written=whole(replay.written),
        ),
        games=by_game(state.games),
        key=whole(state.key),
        iteration=whole(state.iteration),
        ladder=whole(state.ladder),
    )


def make_iteration(
    game: Game, config: Config, mesh: Mesh | None = None
) -> Callable[[TrainState, Hyper], tuple[TrainState, Metrics]]:
    """`iteration(train_state, hyper) -> (train_state, metrics)`, pure; the caller jits it and donates the state.

    With a `mesh` the state is one of `place_state`, each device plays its own games, and the batch of a step is split.

    Metrics are float32 scalars: losses (means over the optimiser steps, NaN where no game has ended yet), of the
    optimiser steps those that were skipped, in this iteration and in a row up to now, and of the games that ended in
    this iteration their number, results and mean length.
    """
    network = config.make_network()
    match = make_match(game, network, config)
    config.replay_rows(game)  # refuses a replay that is too small

    def learn_from(
        learner: Learner, replay: Replay, steps: Steps, learn_key: chex.PRNGKey, hyper: Hyper
    ) -> tuple[Learner, Replay, Metrics]:
        replay = insert(replay, steps, config.longest_game(game))
        known_so_far = count_known(replay)

        def learn(learner: Learner, key: chex.PRNGKey) -> tuple[Learner, Metrics]:
            return update(learner, config, hyper, game, network, replay, known_so_far, key, mesh)

        def learn_round(learner: Learner, key: chex.PRNGKey) -> tuple[Learner, Metrics]:
            learner, metrics = jax.lax.scan(learn, learner, jax.random.split(key, config.updates_per_iteration))
            skipped = metrics.pop("skipped_updates") > 0
            taken = jnp.sum(~skipped)  # 0 / 0 is NaN, where all were skipped
            means = {name: jnp.sum(jnp.where(skipped, 0.0, each)) / taken for name, each in metrics.items()}
            return learner, {**means, "skipped_updates": jnp.sum(skipped, dtype=jnp.float32)}

        def learn_all(learner: Learner) -> tuple[Learner, Metrics]:
            if not config.gate_games:
                return learn_round(learner, learn_key)
            return through_gate(learn_round, match, learner, learn_key, config, hyper)

        def learn_nothing(learner: Learner) -> tuple[Learner, Metrics]:
            metrics = jax.eval_shape(learn_all, learner)[1]
            nothing = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan, leaf.dtype), metrics)
            return learner, {**nothing, "skipped_updates": jnp.float32(0)}

        # Until the first game ends there is nothing to learn from.
        learner, metrics = jax.lax.cond(known_so_far[-1] > 0, learn_all, learn_nothing, learner)
        metrics |= {
            "skipped_in_a_row": learner.skipped.in_a_row.astype(jnp.float32),
            "replay_positions": known_so_far[-1].astype(jnp.float32),
        }
        return learner, replay, metrics

    def iteration(state: TrainState, hyper: Hyper) -> tuple[TrainState, Metrics]:
        play_key, learn_key, next_key = jax.random.split(state.key, 3)
        games, steps = self_play(game, network, config, state.variables, hyper, play_key, state.games, mesh)
        learn = learn_from if mesh is not None else over_members(learn_from)
        learner, replay, metrics = learn(state.learner, state.replay, steps, learn_key, hyper)
        metrics |= _results(steps)
        return TrainState(learner, replay, games, next_key, state.iteration + 1, state.ladder), metrics

    return iteration


def _results(steps: Steps) -> Metrics:
    """Of the games that ended: how many, their results for player 0, plies per game; and the share of proven plies."""
    over = steps.ended & ~steps.cut
    games = jnp.sum(steps.ended)
    return {
        "games": games.astype(jnp.float32),
        "first_wins": jnp.sum(over & (steps.reward > 0)).astype(jnp.float32),
        "draws": jnp.sum(over & (steps.reward == 0)).astype(jnp.float32),
        "second_wins": jnp.sum(over & (steps.reward < 0)).astype(jnp.float32),
        "cut_games": jnp.sum(steps.cut).astype(jnp.float32),
        "plies_per_game": steps.ended.size / jnp.maximum(games, 1),
        "proven_share": jnp.mean(steps.proven.astype(jnp.float32)),
    }
