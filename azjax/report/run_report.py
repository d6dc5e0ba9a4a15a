"""What a run came to, gathered for a page: curves, strength, games, a search tree, and how honest its values are.

Axis letters: `C` classes of predicted values.
"""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation import MatchResult, Player, network_player, search_player
from azjax.evaluation.matches import Record
from azjax.games.game import Game
from azjax.render.tree_picture import to_svg
from azjax.render.tree_text import principal_variation
from azjax.report.sample_games import SampleGame, sample_games
from azjax.report.strength import Strength, measure
from azjax.runs import Throughput, load_run, load_state, measure_throughput
from azjax.runs.metrics import METRICS, TIMING, read_rows
from azjax.search import alphazero_policy, evaluators
from azjax.training import Config, preset

_CLASSES = 10
_CALIBRATION_GAMES = 256
_OPENING_PLIES = 2
_TREE_NODES = 12


@dataclasses.dataclass(frozen=True)
class Calibration:
    """How often games were won that the network valued alike.

    Attributes:
      predicted: [C] mean of the values, -1..1, for the player to move.
      scores: [C] mean result of these games for that player, -1..1.
      intervals: [C] low and high end of its 95% interval.
      positions: [C] how many.
    """

    predicted: tuple[float, ...]
    scores: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    positions: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class RunReport:
    """What a page tells of a run.

    Attributes:
      folder: of the run.
      game: that was learned.
      config: its settings.
      step: iteration of the checkpoint that is shown.
      rows: `metrics.jsonl`.
      timing: `timing.jsonl`.
      throughput: of the parts of an iteration, measured here and now.
      strength: of the network alone and with search; exact where the game can be solved.
      games: sample games of the network with search.
      calibration: of the network's values.
      tree: SVG of the top of the search from the start.
      variation: the moves that the search expects from there.
      start_value: what it expects there, for the player to move.
    """

    folder: Path
    game: Game
    config: Config
    step: int
    rows: list[dict[str, Any]]
    timing: list[dict[str, Any]]
    throughput: Throughput
    strength: list[Strength]
    games: list[SampleGame]
    calibration: Calibration
    tree: str
    variation: list[str]
    start_value: float

    @property
    def changed_settings(self) -> dict[str, tuple[Any, Any]]:
        """Settings that are not those of the game's preset: what they are, and what the preset's are."""
        own, usual = (_flat(config) for config in (self.config, preset(self.game)))
        return {name: (own[name], usual[name]) for name in own if own[name] != usual[name]}


def gather(
    folder: str | Path,
    *,
    num_simulations: int = 100,
    num_games: int = 1000,
    num_sample_games: int = 6,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> RunReport:
    """Reads a run, and lets its newest checkpoint play.

    Args:
      folder: of the run.
      num_simulations: of the searches.
      num_games: of the matches.
      num_sample_games: to be shown, at least 1.
      seed: of everything random.
      progress: told what is done next.

    Raises:
      RunError: it is not a run folder, or has no sound checkpoint.
      ValueError: there are no metrics yet, or a number is out of range.
    """
    if num_sample_games < 1:
        raise InputError(f"num_sample_games must be at least 1, got {num_sample_games}")
    folder = Path(folder)
    game, config = load_run(folder)
    rows, timing = read_rows(folder / METRICS), read_rows(folder / TIMING)
    if not rows:
        raise InputError(f"{folder} has no metrics to report yet")
    step, state = load_state(folder)
    variables = state.averaged
    network, evaluator = config.make_network(), evaluators.network(config.make_network(), game)
    alone = network_player(game, network, variables)
    searching = search_player(
        game,
        evaluator,
        variables,
        num_simulations=num_simulations,
        c_puct=config.hyper.c_puct,
        name=f"network + {num_simulations} simulations",
    )
    progress("where the time goes")
    throughput = measure_throughput(game, config, state)
    keys = jax.random.split(jax.random.key(seed), 4)
    strength = measure(game, [alone, searching], num_games=num_games, key=keys[0], progress=progress)
    progress("sample games")
    games = sample_games(game, searching, num_sample_games, keys[1], opening_plies=_OPENING_PLIES)
    progress("calibration of the values")
    drawing = dataclasses.replace(network_player(game, network, variables, temperature=1.0), name="drawing")
    calibration = calibrate(game, drawing, _CALIBRATION_GAMES, keys[2])
    progress("the tree of a search")
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(keys[3]))
    found = alphazero_policy(
        variables,
        keys[3],
        start,
        game=game,
        evaluator=evaluator,
        num_simulations=num_simulations,
        c_puct=config.hyper.c_puct,
    )
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
        tree=to_svg(found.tree, game, max_nodes=_TREE_NODES),
        variation=principal_variation(found.tree, game),
        start_value=float(found.value[0]),
    )


def calibrate(game: Game, player: Player, count: int, key: Any) -> Calibration:
    """Compares the player's values with the results of games that it plays with itself."""
    played = sample_games(game, player, count, key, opening_plies=0)
    mover = np.concatenate([[int(state.current_player) for state in each.states[:-1]] for each in played])
    sign = np.where(mover == 0, 1.0, -1.0)
    values = np.concatenate([each.values for each in played]) * sign
    results = np.concatenate([np.full(len(each.actions), each.result) for each in played]) * sign
    # One position of a game says as much as all of them where the game is one-sided: intervals count games.
    number = np.concatenate([np.full(len(each.actions), index) for index, each in enumerate(played)])
    place = np.clip(((values + 1) / 2 * _CLASSES).astype(int), 0, _CLASSES - 1)
    predicted, scores, intervals, positions = [], [], [], []
    for each in range(_CLASSES):
        rows = place == each
        if not rows.any():
            continue
        mean, independent = float(results[rows].mean()), len(set(number[rows].tolist()))
        record = _as_record(results[rows], independent)
        predicted.append(float(values[rows].mean()))
        scores.append(mean)
        low, high = record.interval
        intervals.append((2 * low - 1, 2 * high - 1))
        positions.append(int(rows.sum()))
    return Calibration(tuple(predicted), tuple(scores), tuple(intervals), tuple(positions))


def _as_record(results: np.ndarray, games: int) -> Record:
    """Wins, draws and losses in the shares of the results, as of so many games."""
    wins, draws = (round(games * float(np.mean(results == result))) for result in (1, 0))
    return Record(wins, draws, max(0, games - wins - draws))


def _flat(config: Config) -> dict[str, Any]:
    fields = dataclasses.asdict(config)
    return {**{name: value for name, value in fields.items() if name != "hyper"}, **fields["hyper"]}


def duration(seconds: float) -> str:
    """In words."""
    return (
        f"{seconds:.0f} seconds"
        if seconds < 120
        else f"{seconds / 60:.0f} minutes"
        if seconds < 7200
        else (f"{seconds / 3600:.1f} hours")
    )


def score_of(match: MatchResult) -> str:
    """A match in a few words."""
    low, high = match.interval
    if math.isnan(match.score):
        return "no games"
    return f"{match.score:.1%} ({low:.1%} to {high:.1%})"
