"""Reading STUDY.toml. Every key and value is checked, and refused in one line that names it."""

import dataclasses
import math
import tomllib
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from azjax.core.errors import FileError, InputError
from azjax.core.proposals import did_you_mean
from azjax.games.check import make_checked
from azjax.games.game import AnyGame
from azjax.runs.population import MOST_MEMBERS
from azjax.sweep.objective import OBJECTIVES, Objective
from azjax.sweep.study import SET_BY_SWEEP, Budget, Choices, Range, Study
from azjax.training import Config, Hyper, preset

_T = TypeVar("_T")

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("none", "median", "successive_halving")
_MOST_TRIALS = 1_000_000
_TYPES: dict[str, Any] = {
    name: kind for name, kind in typing.get_type_hints(Config).items() if name not in {"hyper", *SET_BY_SWEEP}
} | {"network": str, **{field.name: float for field in dataclasses.fields(Hyper)}}
"""The types of the settings, by name."""
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    int | float: "a number",
    bool: "true or false",
    str: "a text",
    tuple[str, ...]: "a list of texts",
    list[Any]: "a list",
    dict[str, Any]: "a table",
}


@dataclasses.dataclass(frozen=True)
class _File:
    """The keys and tables of STUDY.toml."""

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
      FileError: it cannot be read.
      InputError: it is not TOML, or a key or value is refused.
    """
    path = Path(path)
    try:
        return _study(path.stem, tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # InputError, and the errors of TOML and Unicode
        raise InputError(f"{path}: {error}") from error


def _study(name: str, table: dict[str, Any]) -> Study:
    file = _read(_File, table, "the file")
    game = make_checked(file.game, **file.options)
    usual = preset(game).replace(evaluate_every=0, ladder_every=0)
    base = _within("[base]", lambda: usual.replace(**{key: _setting(key, file.base[key]) for key in file.base}))
    if not file.search:
        raise InputError("[search] must name one setting or more")
    search = {key: _within(f"[search] {key}", lambda: _values(key, file.search[key])) for key in file.search}
    for key, allowed in (("sampler", SAMPLERS), ("pruner", PRUNERS)):
        if getattr(file, key) not in allowed:
            raise InputError(f"unknown {key} {getattr(file, key)!r}; available: {', '.join(allowed)}")
    if not 1 <= file.seeds <= MOST_MEMBERS:
        raise InputError(f"seeds must be 1..{MOST_MEMBERS:,}, got {file.seeds}")
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
    _check_values(study)
    return study


def _check_values(study: Study) -> None:
    """Checks that each value makes a configuration: alone, or beside the first or the last values of the others."""
    ends = {
        key: values.choices if isinstance(values, Choices) else [values.low, values.high]
        for key, values in study.search.items()
    }
    others = [{name: each[place] for name, each in ends.items()} for place in (0, -1)]
    for key, values in ends.items():
        alone = ({name: value} for name, each in ends.items() for value in each)
        valid = [params for params in (*others, *alone) if _is_valid(study, params)]
        # Where none is valid, the reason follows below.
        if valid and all(key in study.config(params).unread for params in valid):
            raise InputError(f"[search] {key} has no effect with the other settings: leave it out")
        for value in values:
            if not any(_is_valid(study, beside | {key: value}) for beside in others):
                _within(f"[search] {key} = {value}", lambda: study.config({key: value}))


def _is_valid(study: Study, params: dict[str, Any]) -> bool:
    try:
        study.config(params)
    except InputError:
        return False
    return True


def _trials(file: _File, search: dict[str, Range | Choices]) -> int:
    """The number of points; by default a grid has all of them."""
    if file.sampler != "grid":
        if not 1 <= file.trials <= _MOST_TRIALS:
            raise InputError(f"trials must be 1..{_MOST_TRIALS:,}, got {file.trials or 'none or 0'}")
        return file.trials
    ranges = [key for key, values in search.items() if isinstance(values, Range)]
    if ranges:
        raise InputError(f"the sampler grid needs choices, and {', '.join(ranges)} is a range")
    size = math.prod(len(values.choices) for values in search.values() if isinstance(values, Choices))
    if not 0 <= file.trials <= size:
        raise InputError(f"trials must be at most the {size} points of the grid, or left out; got {file.trials}")
    return file.trials or size


def _objective(game: AnyGame, table: dict[str, Any]) -> Objective:
    kind = table.pop("kind", None)
    if not isinstance(kind, str) or kind not in OBJECTIVES:
        raise InputError(f"unknown kind {kind!r}; available: {', '.join(OBJECTIVES)}")
    objective: Objective = _read(OBJECTIVES[kind], table, kind)
    objective.check(game)
    return objective


def _values(name: str, table: Any) -> Range | Choices:
    """The values that are searched of one setting."""
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
    if name in SET_BY_SWEEP:
        raise InputError(f"{name} is set by the sweep, see {SET_BY_SWEEP[name]}")
    if name not in _TYPES:
        raise InputError(f"unknown setting {name!r}{did_you_mean(name, _TYPES)}; available: {', '.join(_TYPES)}")
    return _TYPES[name]


def _setting(name: str, value: Any) -> Any:
    """A value of a field of `Config` or `Hyper`."""
    return _typed(_kind(name), value, name)


def _read(kind: type[_T], table: dict[str, Any], where: str) -> _T:
    """A dataclass from a table with its fields."""
    fields = {field.name: field for field in dataclasses.fields(cast(Any, kind))}
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
    """The value, checked to be of the type; a list becomes a tuple where the type is one."""
    if kind == tuple[str, ...]:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        value = tuple(value) if fits else value
    elif kind in (float, int | float):
        fits = type(value) in (int, float)
        value = float(value) if fits and kind != int | float else value
    else:
        # Not isinstance, which takes true and false for integers.
        fits = type(value) is (typing.get_origin(kind) or kind)
    if not fits:
        raise InputError(f"{name} must be {_WORDS[kind]}, got {value!r}")
    return value


def _within(where: str, read: Callable[[], _T]) -> _T:
    """The result of `read`; the messages of its errors begin with `where`."""
    try:
        return read()
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
