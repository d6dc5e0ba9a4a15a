"""What changes from one iteration of a run to the next: simulations, temperature and starts of self-play.

- The number of simulations begins at `Config.first_simulations` and doubles every `Config.doubling_iterations`, up to
  `Config.num_simulations`. The idea is that of progressive simulation (Wu et al. 2024, "MiniZero: Comparative Analysis
  of AlphaZero and MuZero on Go, Othello, and Atari Games"): the later networks get most of the simulations. The members
  of a population on an accelerator compute the searches with each of these numbers and keep one.
- During the first `Hyper.schedule_iterations` iterations, the temperature moves linearly to `Hyper.final_temperature`
  and the largest number of random plies at the start of a game to `Hyper.final_random_start_plies`. MuZero
  (Schrittwieser et al. 2020, "Mastering Atari, Go, Chess and Shogi by Planning with a Learned Model") lowers the
  temperature in the course of its training on Atari too, in steps. The gate and the ladder keep the starts of the first
  iteration, so that their matches stay the same.

No schedule depends on `Config.iterations`, which a resumed run may change. `iteration` is the number of iterations that
were done before. Axis letter: `G` games side by side.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

from azjax.search.draws import Number
from azjax.search.hyper import traced
from azjax.training.config import Config
from azjax.training.hyper import Hyper


def simulation_counts(config: Config) -> tuple[int, ...]:
    """The numbers of simulations of a full search, each for `doubling_iterations`, the last one from then on."""
    counts = [config.first_simulations or config.num_simulations]
    while counts[-1] < config.num_simulations:
        counts.append(min(2 * counts[-1], config.num_simulations))
    return tuple(counts)


def simulations_in_words(config: Config) -> str:
    """The number of simulations of a full search, such as `32`, or `8 to 32` if it grows."""
    first, *_, last = (*simulation_counts(config), config.num_simulations)
    return f"{last}" if first == last else f"{first} to {last}"


def mean_simulations(config: Config, iteration: int) -> float:
    """Mean number of simulations of a search in self-play in an iteration, full and fast ones together."""
    if not config.first_simulations:
        return config.mean_simulations
    counts = simulation_counts(config)
    return counts[min(iteration // config.doubling_iterations, len(counts) - 1)]


def iterations_within(config: Config, budget: float, costs: Sequence[float]) -> float:
    """How many iterations fit into a budget, if the cost of one depends on its number of simulations.

    Args:
      config: the configuration of the run.
      budget: in any unit.
      costs: of an iteration with each of `simulation_counts`, in that unit; a single one if they do not differ.
    """
    iterations = 0.0
    for cost in costs[:-1]:
        fitting = min(budget / cost, config.doubling_iterations)
        iterations, budget = iterations + fitting, budget - fitting * cost
    return iterations + budget / costs[-1]


def temperature(hyper: Hyper, iteration: Int32[Array, "..."]) -> Number:
    """The temperature of a game before `temperature_plies`."""
    if hyper.final_temperature is None:
        return hyper.temperature
    return _between(hyper.temperature, hyper.final_temperature, hyper, iteration)


def random_start_plies(config: Config, hyper: Hyper, iteration: Int32[Array, "*G"]) -> Int32[Array, "*G"] | None:
    """The largest number of random plies at the start of a game, rounded; None where it does not change."""
    if hyper.final_random_start_plies is None:
        return None
    plies = _between(config.random_start_plies, hyper.final_random_start_plies, hyper, iteration)
    return jnp.round(plies).astype(jnp.int32)


def _between(first: Number, final: Number, hyper: Hyper, iteration: Int32[Array, "..."]) -> Float32[Array, "..."]:
    length = traced(hyper.schedule_iterations)
    share = jnp.minimum(traced(iteration), length) / jnp.where(length > 0, length, 1.0)
    # In this form both ends are exact.
    return (1 - share) * first + share * final
