"""STUDY.toml: what a sweep searches, for what, and how long. Whatever cannot be meant is refused in one line."""

import dataclasses
import json
import math
import tomllib
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.games.registry import make, options_of
from azjax.sweep.objective import OBJECTIVES, Objective
from azjax.training import Config, Hyper, preset

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("none", "median", "successive_halving")
_SET_BY_SWEEP = {"seed": "seeds", "iterations": "[budget]"}
_FIELDS: dict[str, Any] = {
    name: kind
    for name, kind in {**typing.get_type_hints(Config), **typing.get_type_hints(Hyper)}.items()
    if name != "hyper" and name not in _SET_BY_SWEEP
}
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    float | None: "a number",
    int | float: "a number",
    bool: "true or false",
    str: "a text",
    tuple[str, ...]: "a list of texts",
    list[Any]: "a list",
    dict[str, Any]: "a table",
}


@dataclasses.dataclass(frozen=True)
class Range:
    """Values from `low` to `high`, both included; drawn evenly, or if `log` by their logarithms."""

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
    """Any of these values."""

    choices: list[Any]

    def __post_init__(self) -> None:
        if len(self.choices) < 2 or len(set(self.choices)) < len(self.choices):
            raise InputError(f"choices must be two or more different values, got {self.choices}")


@dataclasses.dataclass(frozen=True)
class Budget:
    """What each run may spend, in simulations of self-play or in examples that are learned from.

    Attributes:
      simulations: of the searches of self-play; 0 if the budget is in examples.
      examples: positions in the batches of all optimiser steps; 0 if the budget is in simulations.
      rungs: equal parts of the budget, after each of which the objective is measured and the pruner asked.
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
        """Of the budget, after so many rungs."""
        return (self.simulations or self.examples) * rung / self.rungs

    def iterations(self, config: Config, rung: int) -> int:
        """How many whole iterations fit into the first rungs.

        Args:
          config: of the run.
          rung: number of rungs, 1..rungs.

        Raises:
          ValueError: not one fits into a rung, or a gate makes the examples of an iteration uncertain.
        """
        if self.simulations:
            an_iteration = config.num_games * config.steps_per_iteration * config.mean_simulations
        else:
            if config.gate_games:
                raise InputError("a budget in examples needs gate_games = 0, since a gate repeats updates")
            an_iteration = config.updates_per_iteration * config.batch_size
        if an_iteration > self.spent(1):
            raise InputError(
                f"{self.unit} = {self.spent(self.rungs):,.0f} in {self.rungs} rungs are {self.spent(1):,.0f} a rung, "
                f"and an iteration takes {an_iteration:,.0f}"
            )
        # Products of shares may lie a rounding error below a whole number.
        return int(self.spent(rung) / an_iteration + 1e-9)


@dataclasses.dataclass(frozen=True)
class Study:
    """A sweep.

    Attributes:
      name: of the study, that of its file.
      game: what is learned.
      base: settings of all runs; the game's preset, without measurements during training, and what the file changes.
      search: by the name of a setting, the values to look for the best of.
      objective: what is measured of a run, and wanted low or high.
      budget: of each run.
      trials: points of the search space that are tried.
      seeds: runs of each point, with the seeds 0, 1, ...; its value is their mean.
      sampler: who chooses the points: `tpe`, `random` or `grid`.
      pruner: who ends poor trials after a rung: `none`, `median` or `successive_halving`.
      slurm: parameters of submitit for `--slurm`, such as timeout_min.
    """

    name: str
    game: Game
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
        """The settings of a point.

        Args:
          params: its values of the settings that are searched.

        Raises:
          ValueError: they do not fit each other, the game or the budget.
        """
        config = self.base.replace(**params)
        config.replay_rows(self.game)
        self.budget.iterations(config, 1)
        return config

    def describe(self) -> dict[str, Any]:
        """All that must not change while a study goes on, as JSON has it."""
        described = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("name", "trials", "slurm"):
            del described[name]
        described["budget"] = dataclasses.asdict(self.budget)
        described["base"] = shared_settings(dataclasses.asdict(self.base), self.search)
        described["search"] = {name: dataclasses.asdict(values) for name, values in self.search.items()}
        described["objective"] = {"kind": type(self.objective).__name__.lower(), **vars(self.objective)}
        # Its rules are checked by each run; to play them here would take an accelerator away from the workers.
        described["game"] = {"name": self.game.name, "options": options_of(self.game)}
        return json.loads(json.dumps(described))


def shared_settings(base: dict[str, Any], search: Iterable[str]) -> dict[str, Any]:
    """Of a configuration as JSON has it, what all runs of a study have; `search` are the names of what differs."""
    own = {*_SET_BY_SWEEP, *search}
    shared, hyper = (
        {name: value for name, value in settings.items() if name not in own} for settings in (base, base["hyper"])
    )
    return shared | {"hyper": hyper}


@dataclasses.dataclass(frozen=True)
class _File:
    """The tables and keys of STUDY.toml."""

    game: str
    search: dict[str, Any]
    objective: dict[str, Any]
    budget: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    base: dict[str, Any] = dataclasses.field(default_factory=dict)
    slurm: dict[str, Any] = dataclasses.field(default_factory=dict)
    trials: int = 0
    seeds: int = 3
    sampler: str = "tpe"
    pruner: str = "none"


def load_study(path: str | Path) -> Study:
    """Reads STUDY.toml.

    Raises:
      ValueError: it is missing or not TOML, or a key or value is refused.
    """
    path = Path(path)
    try:
        return _study(path.stem, tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # TOML's own errors and those of Unicode are such
        raise InputError(f"{path}: {error}") from error


def _study(name: str, table: dict[str, Any]) -> Study:
    file = _read(_File, table, "the file")
    game = make(file.game, **file.options)
    usual = preset(game).replace(evaluate_every=0, ladder_every=0)
    base = _within("[base]", lambda: usual.replace(**{key: _setting(key, file.base[key]) for key in file.base}))
    if not file.search:
        raise InputError("[search] must name one setting or more")
    search = {key: _within(f"[search] {key}", lambda: _values(key, file.search[key])) for key in file.search}
    for key, allowed in (("sampler", SAMPLERS), ("pruner", PRUNERS)):
        if getattr(file, key) not in allowed:
            raise InputError(f"unknown {key} {getattr(file, key)!r}; available: {', '.join(allowed)}")
    if file.seeds < 1:
        raise InputError(f"seeds must be at least 1, got {file.seeds}")
    study = Study(
        name=name,
        game=game,
        base=base,
        search=search,
        objective=_within("[objective]", lambda: _objective(game, dict(file.objective))),
        budget=_within("[budget]", lambda: _read(Budget, file.budget, "it")),
        trials=_trials(file, search),
        seeds=file.seeds,
        sampler=file.sampler,
        pruner=file.pruner,
        slurm=file.slurm,
    )
    study.config({})
    for key, values in search.items():
        for value in values.choices if isinstance(values, Choices) else (values.low, values.high):
            _within(f"[search] {key} = {value}", lambda: study.config({key: value}))
    return study


def _trials(file: _File, search: dict[str, Range | Choices]) -> int:
    """How many points; all of them where the grid has no number."""
    if file.sampler != "grid":
        if file.trials < 1:
            raise InputError(f"trials must be at least 1, got {file.trials or 'none'}")
        return file.trials
    ranges = [key for key, values in search.items() if isinstance(values, Range)]
    if ranges:
        raise InputError(f"the sampler grid needs choices, and {', '.join(ranges)} is a range")
    size = math.prod(len(values.choices) for values in search.values() if isinstance(values, Choices))
    if not 0 <= file.trials <= size:
        raise InputError(f"trials must be at most the {size} points of the grid, or left out; got {file.trials}")
    return file.trials or size


def _objective(game: Game, table: dict[str, Any]) -> Objective:
    kind = table.pop("kind", None)
    if kind not in OBJECTIVES:
        raise InputError(f"unknown kind {kind!r}; available: {', '.join(OBJECTIVES)}")
    objective: Objective = _read(OBJECTIVES[kind], table, kind)
    objective.check(game)
    return objective


def _values(name: str, table: Any) -> Range | Choices:
    """What is searched of one setting."""
    kind = _kind(name)
    if not isinstance(table, dict) or ("choices" in table) == ("low" in table):
        raise InputError(f"needs {{choices = [...]}} or {{low = ..., high = ...}}, got {table!r}")
    if kind == tuple[str, ...]:
        raise InputError("a list of texts cannot be searched")
    if "choices" in table:
        choices = [_setting(name, value) for value in _typed(list[Any], table["choices"], "choices")]
        return _read(Choices, table | {"choices": choices}, "it")
    if kind in (bool, str):
        raise InputError(f"it is {_WORDS[kind]} and needs choices, got a range")
    ends = {key: _setting(name, table[key]) for key in ("low", "high") if key in table}
    return _read(Range, table | ends, "it")


def _kind(name: str) -> Any:
    """The type of a setting."""
    if name in _SET_BY_SWEEP:
        raise InputError(f"{name} is set by the sweep, see {_SET_BY_SWEEP[name]}")
    if name not in _FIELDS:
        raise InputError(f"unknown setting {name!r}; available: {', '.join(_FIELDS)}")
    return _FIELDS[name]


def _setting(name: str, value: Any) -> Any:
    """A value of a field of `Config` or `Hyper`."""
    return _typed(_kind(name), value, name)


def _read(kind: type, table: dict[str, Any], where: str) -> Any:
    """A dataclass out of a table with its fields."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    types = typing.get_type_hints(kind)
    for key in table:
        if key not in fields:
            raise InputError(f"{where} has no {key!r}; allowed: {', '.join(fields)}")
    for key, field in fields.items():
        no_default = field.default is field.default_factory is dataclasses.MISSING
        if key not in table and no_default:
            raise InputError(f"{where} needs {key}")
    return kind(**{key: _typed(types[key], value, key) for key, value in table.items()})


def _typed(kind: Any, value: Any, name: str) -> Any:
    """The value, if it is one of the type; TOML's lists as tuples where they are kept as such."""
    if kind == tuple[str, ...]:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        value = tuple(value) if fits else value
    elif kind in (float, float | None, int | float):
        fits = type(value) in (int, float)
        value = float(value) if fits and kind != int | float else value
    else:
        # Not isinstance: true and false are no numbers here.
        fits = type(value) is (typing.get_origin(kind) or kind)
    if not fits:
        raise InputError(f"{name} must be {_WORDS[kind]}, got {value!r}")
    return value


def _within(where: str, make: Any) -> Any:
    """What `make` gives; its errors tell the place."""
    try:
        return make()
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
