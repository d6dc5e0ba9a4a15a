"""A study: what a sweep searches, for which objective, and at which cost."""

import dataclasses
import json
import math
from collections.abc import Iterable
from typing import Any

from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.games.registry import options_of
from azjax.sweep.objective import Objective
from azjax.training import Config
from azjax.training.schedules import iterations_within, mean_simulations, simulation_counts

SET_BY_SWEEP = {"seed": "seeds", "iterations": "[budget]"}
"""The settings that a study has no choice of, and what sets them in its file."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Values from `low` to `high`, both included, drawn uniformly; if `log`, uniformly in the logarithm."""

    low: int | float
    high: int | float
    log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(f"low must be less than high, and both finite; got {self.low} and {self.high}")
        if self.log and self.low <= 0:
            raise InputError(f"low must be above 0 with log = true, got {self.low}")


@dataclasses.dataclass(frozen=True)
class Choices:
    """One of several values."""

    choices: list[Any]

    def __post_init__(self) -> None:
        if len(self.choices) < 2 or len(set(self.choices)) < len(self.choices):
            raise InputError(f"choices must be two or more different values, got {self.choices}")


@dataclasses.dataclass(frozen=True)
class Budget:
    """What each run may spend, either in simulations or in examples.

    Attributes:
      simulations: simulations of self-play; 0 if the budget is in examples.
      examples: positions in the batches of all optimizer steps; 0 if the budget is in simulations.
      rungs: number of equal parts of the budget. After each one the objective is measured, and the trial may be pruned.
    """

    simulations: int = 0
    examples: int = 0
    rungs: int = 4

    def __post_init__(self) -> None:
        if (self.simulations > 0) == (self.examples > 0) or min(self.simulations, self.examples) < 0:
            raise InputError(
                "one of simulations and examples must be above 0, and the other left out; got simulations = "
                f"{self.simulations}, examples = {self.examples}"
            )
        if self.rungs < 1:
            raise InputError(f"rungs must be at least 1, got {self.rungs}")

    @property
    def unit(self) -> str:
        return "simulations" if self.simulations else "examples"

    def spent(self, rung: int) -> float:
        """The part of the budget that is spent after `rung` rungs."""
        return (self.simulations or self.examples) * rung / self.rungs

    def iterations(self, config: Config, rung: int) -> int:
        """The number of whole iterations that fit into the first `rung` rungs.

        Args:
          config: the configuration of the run.
          rung: number of rungs, 1..rungs.

        Raises:
          InputError: no iteration fits into a rung, or a gate makes the examples of an iteration uncertain.
        """
        if self.simulations:
            starts = [stage * config.doubling_iterations for stage in range(len(simulation_counts(config)))]
            again = config.reanalyzed_steps * config.num_simulations
            by_game = [config.steps_per_iteration * mean_simulations(config, start) + again for start in starts]
            costs = [config.num_games * count for count in by_game]
        else:
            if config.gate_games:
                raise InputError("a budget in examples needs gate_games = 0, since a gate repeats updates")
            costs = [config.updates_per_iteration * config.batch_size]
        if costs[-1] > self.spent(1):
            raise InputError(
                f"{self.unit} = {self.spent(self.rungs):,.0f} in {self.rungs} rungs are {self.spent(1):,.0f} a rung, "
                f"and an iteration takes {costs[-1]:,.0f}: {self.rungs * costs[-1]:,.0f} are needed, or fewer rungs"
            )
        # The quotient may be a rounding error below a whole number.
        return int(iterations_within(config, self.spent(rung), costs) + 1e-9)


@dataclasses.dataclass(frozen=True)
class Study:
    """A sweep.

    Attributes:
      name: the name of the study and of its file.
      game: the game that is learned.
      base: settings that all runs share: the game's preset, without evaluation during training, and the file's changes.
      search: the values to search, by the name of the setting.
      objective: what is measured of a run, and whether it is minimized or maximized.
      budget: the budget of each run.
      trials: number of points of the search space to try.
      seeds: number of runs of each point, with the seeds 0, 1, ...; the value of the point is their mean.
      sampler: `tpe`, `random` or `grid`; it chooses the points.
      pruner: `none`, `median` or `successive_halving`; it ends poor trials after a rung.
      slurm: parameters of submitit for `--slurm`, such as timeout_min.
    """

    name: str
    game: AnyGame
    base: Config
    search: dict[str, Range | Choices]
    objective: Objective
    budget: Budget
    trials: int
    seeds: int
    sampler: str
    pruner: str
    slurm: dict[str, Any]

    def config(self, params: dict[str, Any]) -> Config:
        """The configuration of a point.

        Args:
          params: values of the settings that are searched.

        Raises:
          InputError: the settings do not fit each other, the game or the budget.
        """
        config = self.base.replace(**params)
        config.replay_rows(self.game)
        self.budget.iterations(config, 1)
        return config

    def describe(self) -> dict[str, Any]:
        """What must not change while a study continues, as JSON holds it."""
        described = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("name", "trials", "slurm"):
            del described[name]
        described["budget"] = dataclasses.asdict(self.budget)
        described["base"] = shared_settings(dataclasses.asdict(self.base), self.search)
        described["search"] = {name: dataclasses.asdict(values) for name, values in self.search.items()}
        described["objective"] = {"kind": type(self.objective).__name__.lower(), **vars(self.objective)}
        # Each run checks the rules. Playing the game here would occupy an accelerator that the workers need.
        described["game"] = {"name": self.game.name, "options": options_of(self.game)}
        as_saved: dict[str, Any] = json.loads(json.dumps(described))
        return as_saved


def shared_settings(base: dict[str, Any], search: Iterable[str]) -> dict[str, Any]:
    """The part of a configuration, as JSON holds it, that all runs of a study share; `search` names the rest."""
    own = {*SET_BY_SWEEP, *search}
    shared, hyper = (
        {name: value for name, value in settings.items() if name not in own} for settings in (base, base["hyper"])
    )
    return shared | {"hyper": hyper}
