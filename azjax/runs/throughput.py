"""Where the time of an iteration goes, measured on this machine."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, PRNGKeyArray, PyTree

from azjax.games.game import AnyGame
from azjax.networks import Variables
from azjax.training.auxiliary_losses import auxiliary_terms
from azjax.training.config import Config
from azjax.training.iteration import TrainState
from azjax.training.learner import Learner, update
from azjax.training.loss import ALPHAZERO_LOSS, Metrics
from azjax.training.replay import Steps, weigh_ready
from azjax.training.schedules import mean_simulations
from azjax.training.self_play import Games, self_play

_ROUNDS = 5


class Throughput(NamedTuple):
    """Seconds of the parts of an iteration.

    Attributes:
      network: the network evaluates positions for the searches of self-play.
      tree_and_rules: the rest of self-play: tree operations and game rules.
      optimizer_steps: the optimizer steps.
    """

    network: float
    tree_and_rules: float
    optimizer_steps: float

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the whole, by name."""
        return {name.replace("_", " "): seconds / sum(self) for name, seconds in self._asdict().items()}


def measure_throughput(game: AnyGame, config: Config, state: TrainState) -> Throughput:
    """Times the parts of an iteration one by one, without compilation; medians of five rounds.

    The network is timed on as many calls and positions as self-play needs. The rest of the time of self-play counts as
    tree and rules. Reanalysis, the gate's matches and evaluation are not timed.

    Args:
      game: the game that is learned.
      config: the configuration of the run.
      state: the state of the run; some games must have ended in its replay.
    """
    network, hyper = config.make_network(game), jax.tree.map(jnp.float32, config.hyper)
    key = jax.random.key(0)
    # One evaluation more than simulations: the root.
    calls = round(config.steps_per_iteration * (mean_simulations(config, int(state.iteration)) + 1))

    @jax.jit
    def play(state: TrainState) -> tuple[Games, Steps]:
        return self_play(game, network, config, state.variables, hyper, state.iteration, key, state.games)

    @jax.jit
    def learn(state: TrainState) -> PyTree:
        weight, terms = weigh_ready(state.replay), (*ALPHAZERO_LOSS, *auxiliary_terms(config))

        def step(learner: Learner, key: PRNGKeyArray) -> tuple[Learner, Metrics]:
            return update(learner, config, hyper, game, network, state.replay, weight, key, terms=terms)

        return jax.lax.scan(step, state.learner, jax.random.split(key, config.updates_per_iteration))

    @jax.jit
    def evaluate(variables: Variables, observations: Float32[Array, "G ..."]) -> Float[Array, ""]:
        def call(_: Any, total: Float[Array, ""]) -> Float[Array, ""]:
            # Each call depends on the result of the previous one.
            output, _ = network.apply(variables, observations + 0 * total, train=False)
            return total + jnp.sum(output.value) + jnp.sum(output.prior_logits)

        total: Float[Array, ""] = jax.lax.fori_loop(0, calls, call, jnp.float32(0))
        return total

    observations = jax.vmap(game.observe)(state.games.states)
    self_play_seconds = median_seconds(lambda: play(state))
    network_seconds = min(self_play_seconds, median_seconds(lambda: evaluate(state.variables, observations)))
    return Throughput(network_seconds, self_play_seconds - network_seconds, median_seconds(lambda: learn(state)))


def median_seconds(run: Callable[[], Any], calls: int = _ROUNDS) -> float:
    """The median time of some calls until their results are there, after one that compiles."""
    jax.block_until_ready(run())
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return statistics.median(times)
