"""The precision `auto`: the one that is faster on this machine, measured once when a run begins."""

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PyTree
from rich.console import Console

from azjax.core.errors import RunError
from azjax.games.game import AnyGame
from azjax.networks import Network, Variables
from azjax.parallel.processes import largest_of_all
from azjax.runs.run_folder import saved_settings
from azjax.training.config import AUTO, PRECISIONS, Config

_LOOPS = 2  # of one call: XLA compiles some operations in another way inside of loops, where runs have them
_ROUNDS = 5
_MUST_GAIN = 1.1  # so that noise does not give two runs on one machine different precisions


def settle_precision(game: AnyGame, config: Config, folder: Path, console: Console) -> Config:
    """The configuration with `float32` or `bfloat16` in place of `auto`: that of the run in `folder`, if there is one.

    bfloat16 has to be faster by a tenth in the positions that an iteration evaluates and learns from. Every process of
    a run must call it.
    """
    if config.precision != AUTO or not isinstance(config.network, str):  # an object has a precision of its own
        return config
    choice = _saved(folder)
    networks = [dataclasses.replace(config, precision=precision).make_network(game) for precision in PRECISIONS]
    if choice is None and networks[0] == networks[1]:  # a registered one without this setting
        choice = PRECISIONS[0]
    if choice is None:
        with console.status("measuring float32 and bfloat16"):
            gain = gain_of_bfloat16(game, dataclasses.replace(config, seed=0, iterations=1))
        choice = PRECISIONS[largest_of_all(int(gain >= _MUST_GAIN))]
        console.print(f"precision {choice}: bfloat16 is {gain:.2f} times as fast as float32 here", highlight=False)
    return dataclasses.replace(config, precision=choice)


def _saved(folder: Path) -> str | None:
    try:
        precision: str = saved_settings(folder)["precision"]
    except (RunError, KeyError):  # there is none; what else is wrong with the folder is told later
        return None
    return precision


@functools.cache
def gain_of_bfloat16(game: AnyGame, config: Config) -> float:
    """How many times as fast as in float32 the network is in bfloat16, in what an iteration asks of it.

    Args:
      game: the game.
      config: of the run, with the seed 0 and one iteration, so that runs alike are measured once.
    """
    works = [_network_work(game, dataclasses.replace(config, precision=precision)) for precision in PRECISIONS]
    # In turn, and the fastest round of each part counts: other work on the machine only slows them down.
    rounds = [[[measure() for _, measure in work] for work in works] for _ in range(_ROUNDS)]
    counts = np.array([[count for count, _ in work] for work in works])
    float32, bfloat16 = np.sum(counts * np.min(rounds, axis=0), axis=1)
    return float(float32 / bfloat16)


def _network_work(game: AnyGame, config: Config) -> list[tuple[float, Callable[[], float]]]:
    """What an iteration asks of the network, in self-play and in learning: how often, and the seconds of once."""
    network = config.make_network(game)
    played = config.steps_per_iteration * (config.mean_simulations + 1)
    evaluations = played + config.reanalyzed_steps * (config.num_simulations + 1)
    return [
        (evaluations, _measurement(game, network, config.num_games, learning=False)),
        (config.updates_per_iteration, _measurement(game, network, config.batch_size, learning=True)),
    ]


def seconds_of_network(game: AnyGame, network: Network, positions: int, *, learning: bool = False) -> float:
    """Fewest seconds in which a network evaluates this many positions at once, or computes gradients from them."""
    measure = _measurement(game, network, positions, learning=learning)
    return min(measure() for _ in range(_ROUNDS))


def _measurement(game: AnyGame, network: Network, positions: int, *, learning: bool) -> Callable[[], float]:
    """A compiled function whose every call measures `seconds_of_network` once."""
    call = functools.partial(_learn if learning else _evaluate, network)
    return _timed_loop(call, network.init(jax.random.key(0), game), _observations(game, positions))


def _observations(game: AnyGame, count: int) -> Float32[Array, "B ..."]:
    return jax.random.bernoulli(jax.random.key(1), 0.3, (count, *game.observation_shape)).astype(jnp.float32)


def _evaluate(network: Network, variables: Variables, observations: Float32[Array, "B ..."]) -> Float32[Array, ""]:
    output, _ = network.apply(variables, observations, train=False)
    return jnp.sum(output.prior_logits) + jnp.sum(output.value)


def _learn(network: Network, variables: Variables, observations: Float32[Array, "B ..."]) -> PyTree:
    rest = {name: collection for name, collection in variables.items() if name != "params"}

    def loss(params: PyTree) -> Float32[Array, ""]:
        output, _ = network.apply({"params": params, **rest}, observations, train=True)
        return jnp.sum(output.prior_logits**2) + jnp.sum(output.value**2)

    return jax.grad(loss)(variables["params"])


def _timed_loop(
    call: Callable[[Variables, Array], Any], variables: Variables, observations: Array
) -> Callable[[], float]:
    """A function that measures the seconds of one of the calls that follow each other in a loop."""

    @jax.jit
    def loop(variables: Variables, observations: Float32[Array, "B ..."]) -> Float32[Array, ""]:
        def body(_: Int32[Array, ""], total: Float32[Array, ""]) -> Float32[Array, ""]:
            # Each call depends on the one before, so that none is left out.
            results = call(variables, observations + 0 * total)
            return jax.tree.reduce(lambda sum_so_far, leaf: sum_so_far + jnp.sum(leaf), results, total)

        total: Float32[Array, ""] = jax.lax.fori_loop(0, _LOOPS, body, jnp.float32(0))
        return total

    def measure() -> float:
        began = time.perf_counter()
        jax.block_until_ready(loop(variables, observations))
        return (time.perf_counter() - began) / _LOOPS

    measure()  # compiles
    return measure
