"""Where the time of an iteration goes, measured on this machine."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.game import Game
from azjax.networks import Variables
from azjax.training.config import Config
from azjax.training.iteration import TrainState
from azjax.training.learner import update
from azjax.training.replay import count_known
from azjax.training.self_play import self_play

_ROUNDS = 5


class Throughput(NamedTuple):
    """Seconds of an iteration.

    Attributes:
      network: self-play's searches judge positions.
      tree_and_rules: the rest of self-play: the tree goes down and up, games move on.
      optimiser_steps: the network learns.
    """

    network: float
    tree_and_rules: float
    optimiser_steps: float

    @property
    def shares(self) -> dict[str, float]:
        """Of the whole, by name."""
        return {name.replace("_", " "): seconds / sum(self) for name, seconds in self._asdict().items()}


def measure_throughput(game: Game, config: Config, state: TrainState) -> Throughput:
    """Runs the parts of an iteration by themselves, after they were compiled; medians of five rounds.

    The network is run as often as self-play calls it, on as many positions at once, and what self-play takes longer is
    the tree and the rules.

    Args:
      game: the game.
      config: of the run.
      state: of the run, with games that have ended in its replay.
    """
    network, hyper = config.make_network(), jax.tree.map(jnp.float32, config.hyper)
    key = jax.random.key(0)
    # The root is judged too.
    calls = round(config.steps_per_iteration * (config.mean_simulations + 1))

    @jax.jit
    def play(state: TrainState) -> Any:
        return self_play(game, network, config, state.variables, hyper, key, state.games)

    @jax.jit
    def learn(state: TrainState) -> Any:
        known = count_known(state.replay)

        def step(learner: Any, key: jax.Array) -> Any:
            return update(learner, config, hyper, game, network, state.replay, known, key)

        return jax.lax.scan(step, state.learner, jax.random.split(key, config.updates_per_iteration))

    @jax.jit
    def evaluate(variables: Variables, observations: jax.Array) -> Any:
        def call(_: Any, total: jax.Array) -> jax.Array:
            # Each call waits for the one before.
            logits, value, _ = network.apply(variables, observations + 0 * total, train=False)
            return total + jnp.sum(value) + jnp.sum(logits)

        return jax.lax.fori_loop(0, calls, call, jnp.float32(0))

    observations = jax.vmap(game.observe)(state.games.states)
    self_playing = _seconds_of(lambda: play(state))
    evaluating = min(self_playing, _seconds_of(lambda: evaluate(state.variables, observations)))
    return Throughput(evaluating, self_playing - evaluating, _seconds_of(lambda: learn(state)))


def _seconds_of(run: Callable[[], Any]) -> float:
    """Median, without the first, which compiles."""
    jax.block_until_ready(run())
    times = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return statistics.median(times)
