"""A run on a page: one HTML file that needs nothing else, and the same in Markdown with its pictures beside it."""

import importlib.resources
import io
from pathlib import Path
from typing import Any

import numpy as np

from azjax.core.errors import InputError
from azjax.games.protocols import action_to_text, player_names
from azjax.games.registry import options_of
from azjax.render.picture import svg
from azjax.report.learning_curve import figure_of_size, learning_figure, progress_figure, tidy
from azjax.report.run_report import Calibration, RunReport, duration, score_of
from azjax.report.sample_games import SampleGame

HTML, MARKDOWN, PICTURES = "report.html", "report.md", "report"
_BLUE, _GREY = "#2a6fbb", "#9aa0a6"


def write_report(report: RunReport) -> Path:
    """Writes `report.html`, `report.md` and the folder of its pictures into the folder of the run.

    Returns:
      the path of the HTML file.

    Raises:
      ValueError: Matplotlib or Jinja is not installed.
      OSError: it could not be written.
    """
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise InputError("a report needs Jinja: pip install 'azjax[plot]'") from error
    plain = jinja2.Environment(autoescape=False, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    pages = {HTML: plain.overlay(autoescape=True), MARKDOWN: plain}
    pictures = {
        "learning": svg_text(learning_figure(report.game, report.rows, report.timing)),
        "progress": svg_text(progress_figure(report.rows, report.timing)),
        "calibration": svg_text(_calibration_figure(report.calibration)),
        "tree": report.tree,
    }
    told = {
        "title": f"{report.game.name}: {report.folder.name}",
        "game": report.game,
        "facts": facts(report),
        "changed": report.changed_settings,
        "throughput": throughput_rows(report),
        "strength": strength_rows(report),
        "players": [strength.player for strength in report.strength],
        "variation": " ".join(report.variation),
        "start_value": f"{report.start_value:+.2f}",
        "calibration": list(zip(*_calibration_columns(report.calibration), strict=True)),
        "pictures": pictures,
    }
    folder = report.folder
    (folder / PICTURES).mkdir(exist_ok=True)
    for name, picture in pictures.items():
        (folder / PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
    games = [_shown(report, number, played) for number, played in enumerate(report.games)]
    for name, environment in pages.items():
        template = importlib.resources.files("azjax.report").joinpath(f"{name}.jinja").read_text(encoding="utf-8")
        (folder / name).write_text(environment.from_string(template).render(told, games=games), encoding="utf-8")
    return folder / HTML


def facts(report: RunReport) -> dict[str, str]:
    """What was run, and how long."""
    config, rows, timing = report.config, report.rows, report.timing
    seconds = sum(row["seconds"] + row["evaluation_seconds"] for row in timing)
    games = sum(row["games"] for row in rows)
    positions = len(rows) * config.num_games * config.steps_per_iteration
    rate = sum(row["seconds"] * row["simulations_per_second"] for row in timing) / max(seconds, 1e-9)
    options = ", ".join(f"{name}={value}" for name, value in options_of(report.game).items())
    return {
        "game": report.game.name + (f" ({options})" if options else ""),
        "training": f"{len(rows):,} iterations in {duration(seconds)}; checkpoint {report.step:,} is shown",
        "self-play": f"{games:,.0f} games, {positions:,} positions",
        "search": f"{config.policy}, {config.num_simulations} simulations a move; {rate:,.0f} a second",
        "network": str(config.make_network()),
        "seed": str(config.seed),
    }


def throughput_rows(report: RunReport) -> list[tuple[str, float, str, str]]:
    """Each part of an iteration: its name, share of the time, seconds, and what it does in a second."""
    config, found = report.config, report.throughput
    played = config.num_games * config.steps_per_iteration
    self_play = found.network + found.tree_and_rules
    rates = (
        f"{played * (config.mean_simulations + 1) / found.network:,.0f} positions judged",
        f"{played * config.mean_simulations / self_play:,.0f} simulations, with the network",
        f"{config.updates_per_iteration * config.batch_size / found.optimiser_steps:,.0f} positions learned from",
    )
    return [
        (part, share, f"{seconds:.3f}", rate)
        for (part, share), seconds, rate in zip(found.shares.items(), found, rates, strict=True)
    ]


def strength_rows(report: RunReport) -> list[tuple[str, list[str]]]:
    """What was measured, a row each: exact values where the game can be solved, then matches."""
    columns = []
    for strength in report.strength:
        rows: dict[str, str] = {}
        if strength.exact is not None:
            rows.update(row for row in strength.exact.rows() if row[0] not in ("player", "game"))
        for match in strength.matches:
            rows[f"{match.games:,} games against {match.second}"] = score_of(match)
        columns.append(rows)
    return [(label, [column[label] for column in columns]) for label in columns[0]]


def _shown(report: RunReport, number: int, played: SampleGame) -> dict[str, Any]:
    """A game as the page shows it: pictures, moves, and what each side expected."""
    game, names = report.game, player_names(report.game)
    winner = "a draw" if played.result == 0 else f"{names[0 if played.result > 0 else 1]} wins"
    opening = sum(preferences is None for preferences in played.preferences)
    how = f", after {opening} random moves" if opening else ""
    frames = []
    for ply, state in enumerate(played.states):
        last = played.actions[ply - 1] if ply else None
        thought = played.preferences[ply] if ply < len(played.actions) else None
        frames.append(svg(game, state, policy=thought, last_action=last))
    moves = [action_to_text(game, state, action) for state, action in zip(played.states, played.actions, strict=False)]
    expected = [None if np.isnan(value) else round((value + 1) / 2, 4) for value in played.values]
    return {
        "title": f"Game {number + 1}{how}: {winner} after {len(moves)} plies",
        "frames": frames,
        "moves": moves,
        "expected": expected,
        "players": list(names),
    }


def _calibration_columns(calibration: Calibration) -> tuple[list[str], ...]:
    return (
        [f"{value:+.2f}" for value in calibration.predicted],
        [f"{score:+.2f}" for score in calibration.scores],
        [f"{low:+.2f} to {high:+.2f}" for low, high in calibration.intervals],
        [f"{count:,}" for count in calibration.positions],
    )


def _calibration_figure(calibration: Calibration) -> Any:
    figure = figure_of_size(4.6, 3.6)
    panel = figure.subplots()
    scores, ends = np.array(calibration.scores), np.array(calibration.intervals)
    panel.plot([-1, 1], [-1, 1], color=_GREY, linewidth=1, linestyle="--")
    around = np.maximum([scores - ends[:, 0], ends[:, 1] - scores], 0)
    panel.errorbar(calibration.predicted, scores, around, fmt="o", color=_BLUE, ms=4)
    panel.set_xlim(-1.05, 1.05)
    panel.set_ylim(-1.05, 1.05)
    panel.set_ylabel("result, mean of the games")
    panel.set_title("the network's value and what came of it", fontsize=10)
    tidy(panel, "value, for the player to move")
    return figure


def svg_text(figure: Any) -> str:
    """A figure as text, without what differs from run to run."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
