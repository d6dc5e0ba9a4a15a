"""The contents of a run's report: metrics, strength, sample games, a search tree and the calibration of values."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from azjax.agents import load_player, load_search_spec
from azjax.core.errors import InputError, RunError
from azjax.evaluation import network_player
from azjax.games.game import AnyGame
from azjax.render import has_picture, principal_variation, to_svg
from azjax.report.sample_games import Calibration, SampleGame, calibrate, sample_games
from azjax.report.strength import Strength, measure
from azjax.runs import Throughput, load_run, load_state, measure_throughput
from azjax.runs.metrics import METRICS, TIMING, Row, read_rows
from azjax.training import Config, preset

CALIBRATION_GAMES = 256
_OPENING_PLIES = 2
_TREE_NODES = 12


@dataclasses.dataclass(frozen=True)
class RunReport:
    """The contents of a report.

    Attributes:
      folder: the run folder.
      game: the game that was learned.
      config: the settings of the run.
      step: iteration of the checkpoint that was measured.
      rows: rows of `metrics.jsonl`.
      timing: rows of `timing.jsonl`.
      throughput: seconds of the parts of an iteration, measured on this machine.
      strength: of the network alone and with the search of its training; exact if the game can be solved.
      games: sample games of the network with search.
      calibration: results by the value of the network alone.
      tree: the top of a search of AlphaZero from the start, as SVG; None for a game without pictures.
      variation: the principal variation of that search.
      start_value: the value of that search, for the player to move.
    """

    folder: Path
    game: AnyGame
    config: Config
    step: int
    rows: list[Row]
    timing: list[Row]
    throughput: Throughput
    strength: list[Strength]
    games: list[SampleGame]
    calibration: Calibration
    tree: str | None
    variation: list[str]
    start_value: float

    @property
    def changed_settings(self) -> dict[str, tuple[Any, Any]]:
        """The settings that differ from the game's preset: (value here, value of the preset) by name."""
        own, usual = (_flat(config) for config in (self.config, preset(self.game)))
        return {name: (own[name], usual[name]) for name in own if own[name] != usual[name]}


def _rows(path: Path, *names: str) -> list[Row]:
    """The rows of a metrics file, whose every line is sound and has these numbers."""
    complete = path.read_bytes().count(b"\n") if path.exists() else 0  # first: a trainer may write others meanwhile
    rows = read_rows(path)
    sound = itertools.takewhile(lambda row: all(row.get(name) is not None for name in names), rows)
    count = len(list(sound))
    if count < complete:
        raise RunError(f"{path}: line {count + 1} is damaged")
    return rows


def gather(
    folder: str | Path,
    *,
    num_simulations: int = 100,
    num_games: int | None = None,
    num_sample_games: int = 6,
    seed: int = 0,
    progress: Callable[[str], None] = lambda task: None,
) -> RunReport:
    """Reads a run and measures its newest checkpoint.

    Args:
      folder: the run folder.
      num_simulations: of each search.
      num_games: of each match; an even number. None for 10,000 if the game is solved, else 100.
      num_sample_games: number of games in the report, at least 1.
      seed: for all random numbers.
      progress: called with a description of each task before it starts.

    Raises:
      RunError: it is not a run folder, it has no sound checkpoint, or its metrics are damaged.
      InputError: there are no metrics yet, or a number is out of range.
    """
    if num_sample_games < 1:
        raise InputError(f"num_sample_games must be at least 1, got {num_sample_games}")
    folder = Path(folder)
    game, config = load_run(folder)
    rows, timing = (
        _rows(folder / METRICS, "games"),
        _rows(folder / TIMING, "seconds", "evaluation_seconds", "simulations_per_second"),
    )
    if not rows:
        raise InputError(f"{folder} has no metrics to report yet")
    step, state = load_state(folder)
    variables, network = state.ema, config.make_network(game)
    alone = network_player(game, network, variables)
    spec = f"{folder}@{step}"  # a trainer may save another checkpoint meanwhile
    searching = load_player(spec, num_simulations=num_simulations)
    progress("throughput of the parts of an iteration")
    throughput = measure_throughput(game, config, state)
    keys = jax.random.split(jax.random.key(seed), 5)
    strength = measure(game, [alone, searching], num_games=num_games, key=keys[0], progress=progress)
    progress("sample games")
    games = sample_games(game, searching, num_sample_games, keys[1], opening_plies=_OPENING_PLIES)
    progress("calibration of the values")
    calibration = calibrate(game, network_player(game, network, variables, temperature=1.0), CALIBRATION_GAMES, keys[2])
    progress("search tree of the start")
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(keys[3]))
    search = load_search_spec(spec, game)
    policy = dataclasses.replace(search.policy, num_simulations=num_simulations)
    result = policy(search.params, keys[4], start, hyper=search.hyper)
    return RunReport(
        folder=folder,
        game=game,
        config=config,
        step=step,
        rows=rows,
        timing=timing,
        throughput=throughput,
        strength=strength,
        games=games,
        calibration=calibration,
        tree=to_svg(result.tree, game, max_nodes=_TREE_NODES) if has_picture(game) else None,
        variation=principal_variation(result.tree, game),
        start_value=float(result.value[0]),
    )


def _flat(config: Config) -> dict[str, Any]:
    fields = dataclasses.asdict(config)
    return {**{name: value for name, value in fields.items() if name != "hyper"}, **fields["hyper"]}
