"""The iteration: self-play, targets, replay and optimiser steps, as one jitted function of `TrainState`."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from azjax.games.game import Game, state_dataclass
from azjax.networks import Variables
from azjax.training.config import Config, Hyper
from azjax.training.loss import optimiser, update
from azjax.training.replay import Replay, Steps, count_known, insert, new_replay, sample
from azjax.training.self_play import make_start, self_play

Metrics = dict[str, chex.Array]


@state_dataclass
class TrainState:
    """Everything that a run is: saved and restored, it goes on to the same bit.

    variables: the network's.
    optimiser_state: Optax's.
    replay: the positions to learn from.
    games: the running games of self-play, every leaf [G, ...].
    key: the source of all that is random from here on.
    iteration: int32 []; how many were done.
    """

    variables: Variables
    optimiser_state: optax.OptState
    replay: Replay
    games: Any
    key: chex.PRNGKey
    iteration: chex.Array


def init(game: Game, config: Config, seed: chex.Numeric, hyper: Hyper) -> TrainState:
    """The state before the first iteration. Pure: `jax.vmap` over (seed, hyper) begins a population."""
    network_key, start_key, key = jax.random.split(jax.random.key(seed), 3)
    variables = config.make_network().init(network_key, game)
    games = jax.vmap(make_start(game, config))(jax.random.split(start_key, config.num_games))
    return TrainState(
        variables=variables,
        optimiser_state=optimiser(hyper).init(variables["params"]),
        replay=new_replay(game, games, config.replay_rows(game)),
        games=games,
        key=key,
        iteration=jnp.int32(0),
    )


def make_iteration(game: Game, config: Config) -> Callable[[TrainState, Hyper], tuple[TrainState, Metrics]]:
    """`iteration(train_state, hyper) -> (train_state, metrics)`, pure; the caller jits it and donates the state.

    Metrics are float32 scalars: losses (means over the optimiser steps, NaN where no game has ended yet), and of
    the games that ended in this iteration their number, results and mean length.
    """
    network = config.make_network()
    config.replay_rows(game)  # refuses a replay that is too small

    def iteration(state: TrainState, hyper: Hyper) -> tuple[TrainState, Metrics]:
        play_key, learn_key, next_key = jax.random.split(state.key, 3)
        games, steps = self_play(game, network, config, state.variables, hyper, play_key, state.games)
        replay = insert(game, state.replay, steps)
        known_so_far = count_known(replay)

        def learn(carry: tuple, key: chex.PRNGKey) -> tuple[Any, Metrics]:
            variables, optimiser_state = carry
            sample_key, symmetry_key = jax.random.split(key)
            examples = sample(replay, known_so_far, sample_key, config.batch_size)
            variables, optimiser_state, metrics = update(
                variables, optimiser_state, hyper, game, network, symmetry_key, examples
            )
            return (variables, optimiser_state), metrics

        def learn_all(carry: tuple) -> tuple[Any, Metrics]:
            carry, metrics = jax.lax.scan(learn, carry, jax.random.split(learn_key, config.updates_per_iteration))
            return carry, jax.tree.map(jnp.mean, metrics)

        def learn_nothing(carry: tuple) -> tuple[Any, Metrics]:
            metrics = jax.eval_shape(learn_all, carry)[1]
            return carry, jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan, leaf.dtype), metrics)

        # Until the first game ends there is nothing to learn from.
        learned, metrics = jax.lax.cond(
            known_so_far[-1] > 0, learn_all, learn_nothing, (state.variables, state.optimiser_state)
        )
        variables, optimiser_state = learned
        state = TrainState(variables, optimiser_state, replay, games, next_key, state.iteration + 1)
        return state, {**metrics, **_results(steps), "replay_positions": known_so_far[-1].astype(jnp.float32)}

    return iteration


def _results(steps: Steps) -> Metrics:
    """Of the games that ended: how many, their results for player 0, and plies per game."""
    ended = steps.ended
    games = jnp.sum(ended)
    return {
        "games": games.astype(jnp.float32),
        "first_wins": jnp.sum(ended & (steps.reward > 0)).astype(jnp.float32),
        "draws": jnp.sum(ended & (steps.reward == 0)).astype(jnp.float32),
        "second_wins": jnp.sum(ended & (steps.reward < 0)).astype(jnp.float32),
        "plies_per_game": ended.size / jnp.maximum(games, 1),
    }
