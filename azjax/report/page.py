"""A run's report as one HTML file without external references, and as Markdown with its pictures in a folder."""

from pathlib import Path
from typing import TypedDict

import numpy as np

from azjax.core.errors import FileError
from azjax.core.files import write_text
from azjax.core.progress import duration
from azjax.evaluation import MatchResult
from azjax.games.protocols import action_to_text, player_names
from azjax.games.registry import options_of
from azjax.report.boards import board
from azjax.report.figures import calibration_figure, learning_figures, svg_text
from azjax.report.run_report import CALIBRATION_GAMES, RunReport
from azjax.report.sample_games import SampleGame
from azjax.report.templates import render
from azjax.training.schedules import mean_simulations, simulations_in_words

_TITLES = {
    "loss": "Losses",
    "results": "Results of self-play",
    "mistakes": "Mistakes of the network alone",
    "ladder": "Elo of the network alone, and its scores",
    "agreement": "Agreement with the targets",
    "plies": "Plies of a game of self-play",
    "speed": "Simulations per second",
}
HTML, MARKDOWN, PICTURES = "report.html", "report.md", "report"


def write_report(report: RunReport) -> Path:
    """Writes `report.html`, `report.md` and the folder of its pictures into the run folder.

    Returns:
      the path of the HTML file.

    Raises:
      InputError: Matplotlib or Jinja is not installed.
      FileError: a file cannot be written; an existing one is unchanged.
    """
    learning = {name: svg_text(figure) for name, figure in learning_figures(report.rows, report.timing).items()}
    pictures = {
        **learning,
        "calibration": svg_text(calibration_figure(report.calibration)),
        **({} if report.tree is None else {"tree": report.tree}),
    }
    content = {
        "title": f"{report.game.name}: {report.folder.absolute().name}",
        "first_player": player_names(report.game)[0],
        "facts": facts(report),
        "changed": report.changed_settings,
        "throughput": throughput_rows(report),
        "strength": strength_rows(report),
        "players": [strength.player for strength in report.strength],
        "variation": " ".join(report.variation),
        "start_value": f"{report.start_value:+z.2f}",
        "calibration_games": CALIBRATION_GAMES,
        "calibration": calibration_rows(report),
        "learning": list(learning),
        "titles": _TITLES,
        "pictures": pictures,
        "games": [_game_content(report, number, played) for number, played in enumerate(report.games)],
    }
    folder = report.folder
    try:
        (folder / PICTURES).mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder / PICTURES} could not be made: {error.strerror}") from error
    for name, picture in pictures.items():
        write_text(folder / PICTURES / f"{name}.svg", picture)
    for name in (HTML, MARKDOWN):
        write_text(folder / name, render(f"{name}.jinja", content))
    return folder / HTML


def facts(report: RunReport) -> dict[str, str]:
    """The settings and the size of the run, as labels and texts."""
    config, rows, timing = report.config, report.rows, report.timing
    seconds = sum(row["seconds"] + row["evaluation_seconds"] for row in timing)
    games = sum(row["games"] for row in rows)
    positions = len(rows) * config.num_games * config.steps_per_iteration
    simulations = sum(row["seconds"] * row["simulations_per_second"] for row in timing)
    rate = simulations / max(sum(row["seconds"] for row in timing), 1e-9)
    options = ", ".join(f"{name}={value}" for name, value in options_of(report.game).items())
    return {
        "game": report.game.name + (f" ({options})" if options else ""),
        "training": f"{duration(seconds)} to iteration {len(rows):,}; this report is of checkpoint {report.step:,}",
        "self-play": f"{games:,.0f} games, {positions:,} positions",
        "search": f"{config.policy}, {simulations_in_words(config)} simulations per move; {rate:,.0f} per second",
        "network": str(config.make_network(report.game)),
        "seed": str(config.seed),
    }


def throughput_rows(report: RunReport) -> list[tuple[str, float, str, str]]:
    """For each part of an iteration: its name, its share of the time, its seconds, and its rate."""
    config, seconds = report.config, report.throughput
    played, simulations = config.num_games * config.steps_per_iteration, mean_simulations(config, report.step)
    self_play = seconds.network + seconds.tree_and_rules
    rates = (
        f"{played * (simulations + 1) / seconds.network:,.0f} positions evaluated",
        f"{played * simulations / self_play:,.0f} simulations, with the network",
        f"{config.updates_per_iteration * config.batch_size / seconds.optimizer_steps:,.0f} training positions",
    )
    parts = zip(seconds.shares.items(), seconds, rates, strict=True)
    return [(part, share, f"{part_seconds:.3f}", rate) for (part, share), part_seconds, rate in parts]


def strength_rows(report: RunReport) -> list[tuple[str, list[str]]]:
    """A label and a text per player for each measurement: exact ones if the game can be solved, then matches."""
    columns = [
        strength.exact_rows()
        | {f"{match.games:,} games against {match.second}": _score(match) for match in strength.matches}
        for strength in report.strength
    ]
    return [(label, [column[label] for column in columns]) for label in columns[0]]


def calibration_rows(report: RunReport) -> list[tuple[str, str, str, str]]:
    """The predicted value, mean result, interval and number of positions of each class of values."""
    calibration = report.calibration
    classes = zip(calibration.predicted, calibration.results, calibration.intervals, calibration.positions, strict=True)
    return [
        (f"{value:+z.2f}", f"{result:+z.2f}", f"{low:+z.2f} to {high:+z.2f}", f"{count:,}")
        for value, result, (low, high), count in classes
    ]


class _GameContent(TypedDict):
    """A game for the page: T + 1 frames and T moves; `expected` is player 0's expected score, None in the opening.

    `shown` is the ply at which it opens.
    """

    title: str
    frames: list[str]
    moves: list[str]
    expected: list[float | None]
    shown: int
    players: list[str]


def _game_content(report: RunReport, number: int, played: SampleGame) -> _GameContent:
    game, names = report.game, player_names(report.game)
    result = "a draw" if played.result == 0 else f"{names[0 if played.result > 0 else 1]} wins"
    opening = sum(preferences is None for preferences in played.preferences)
    how = f", after {opening} random moves" if opening else ""
    actions, policies = [None, *played.actions], [*played.preferences, None]
    moves = [action_to_text(game, state, action) for state, action in zip(played.states, played.actions, strict=False)]
    return {
        "title": f"Game {number + 1}{how}: {result} after {len(moves)} plies",
        "frames": [
            board(game, state, policy=policy, last_action=action)
            for state, policy, action in zip(played.states, policies, actions, strict=True)
        ],
        "moves": moves,
        "expected": [None if np.isnan(value) else round((value + 1) / 2, 4) for value in played.values],
        "shown": _turning_ply(played),
        "players": list(names),
    }


def _turning_ply(played: SampleGame) -> int:
    """The ply before which the value changed most, where a search valued the positions; the last ply if none did."""
    changes = np.abs(np.diff(np.asarray(played.values, np.float64)))
    return int(np.nanargmax(changes)) + 1 if np.isfinite(changes).any() else len(played.actions)


def _score(match: MatchResult) -> str:
    """The score of a match with its interval."""
    low, high = match.interval
    return f"{match.score:.1%} ({low:.1%} to {high:.1%})" if match.games else "no games"
