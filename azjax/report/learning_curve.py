"""`learning_curve.png`: how a run learned, in one picture."""

from pathlib import Path
from typing import Any

import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.runs import load_run
from azjax.runs.metrics import METRICS, TIMING, read_rows

PICTURE = "learning_curve.png"
_COLOURS = {"policy": "#2a6fbb", "value": "#c8553d", "first": "#2a6fbb", "draw": "#9aa0a6", "second": "#e0a458"}
_SCORES = ["#e0a458", "#c8553d", "#5b8c5a", "#7a5195", "#9aa0a6"]


def draw_learning_curve(folder: str | Path) -> Path:
    """Draws the metrics of a run to `learning_curve.png` in its folder.

    Raises:
      RunError: it is not a run folder.
      ValueError: there are no metrics yet, or Matplotlib is not installed.
    """
    folder = Path(folder)
    game, _ = load_run(folder)
    rows, timing = read_rows(folder / METRICS), read_rows(folder / TIMING)
    if not rows:
        raise InputError(f"{folder} has no metrics to draw yet")
    learning_figure(game, rows, timing).savefig(folder / PICTURE, dpi=150)
    return folder / PICTURE


def figure_of_size(width: float, height: float) -> Any:
    """An empty figure, in inches. Not by pyplot, which would choose a window system.

    Raises:
      ValueError: Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise InputError("pictures need Matplotlib: pip install 'azjax[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def learning_figure(game: Game, rows: list[dict[str, Any]], timing: list[dict[str, Any]]) -> Any:
    """Losses, results of self-play, and mistakes and ladder where they were measured, from the rows of both files.

    Raises:
      ValueError: Matplotlib is not installed.
    """
    seconds = sum(row["seconds"] for row in timing)
    duration = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.1f} minutes"
    measured = [
        (draw, some)
        for name, draw in (("mistakes", _draw_mistakes), ("ladder_rating", _draw_ladder))
        if (some := [row for row in rows if name in row])
    ]
    columns = 2 + len(measured)
    figure = figure_of_size(max(11, 3.6 * columns), 3.4 if measured else 3.2)
    panels = figure.subplots(1, columns)
    figure.suptitle(
        f"{game.name}: {rows[-1]['iteration']:,} iterations, {duration} of self-play and updates", fontsize=12
    )
    _draw_losses(panels[0], rows)
    _draw_results(panels[1], rows)
    for panel, (draw, some) in zip(panels[2:], measured, strict=True):
        draw(panel, some)
    for panel in panels:
        tidy(panel, "iteration")
    return figure


def progress_figure(rows: list[dict[str, Any]], timing: list[dict[str, Any]]) -> Any:
    """How often the network agrees with its targets, how long games are, and simulations per second."""
    is_measured = any("policy_accuracy" in row for row in rows)  # not in runs of the first version
    figure = figure_of_size(11, 2.8)
    *agreement, length, speed = figure.subplots(1, 2 + is_measured)
    iteration = _series(rows, "iteration")
    for panel in agreement:
        for name in ("policy", "value"):
            values = _smooth(_series(rows, f"{name}_accuracy"))
            panel.plot(iteration, values, color=_COLOURS[name], label=name)
        panel.set_ylim(0, 1)
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        panel.set_title("agreement with the targets", fontsize=10)
        panel.legend(frameon=False, fontsize=8)
    length.plot(iteration, _smooth(_series(rows, "plies_per_game")), color=_COLOURS["first"])
    length.set_ylim(bottom=0)
    length.set_title("plies of a game of self-play", fontsize=10)
    speed.plot(
        _series(timing, "iteration"), _smooth(_series(timing, "simulations_per_second")), color=_COLOURS["first"]
    )
    speed.set_ylim(bottom=0)
    speed.yaxis.set_major_formatter("{x:,.0f}")
    speed.set_title("simulations per second", fontsize=10)
    for panel in (*agreement, length, speed):
        tidy(panel, "iteration")
    return figure


def tidy(panel: Any, x: str) -> None:
    """The name of the x axis, and little ink."""
    panel.set_xlabel(x)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)


def _series(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    """NaN where it was not measured."""
    return np.array([np.nan if row.get(name) is None else row[name] for row in rows], float)


def _smooth(values: np.ndarray) -> np.ndarray:
    """A running mean over a fiftieth of the run."""
    width = max(1, len(values) // 50)
    return np.array([_mean(values[max(0, i - width + 1) : i + 1]) for i in range(len(values))])


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def _draw_losses(panel: Any, rows: list[dict[str, Any]]) -> None:
    iteration = _series(rows, "iteration")
    excess = _series(rows, "policy_loss") - _series(rows, "target_entropy")
    lines = (("policy (above its target's entropy)", excess, "policy"), ("value", _series(rows, "value_loss"), "value"))
    for label, values, colour in lines:
        panel.plot(iteration, values, color=_COLOURS[colour], alpha=0.2, linewidth=0.8)
        panel.plot(iteration, _smooth(values), color=_COLOURS[colour], label=label, linewidth=1.8)
    panel.set_title("loss", fontsize=10)
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=8)


def _draw_results(panel: Any, rows: list[dict[str, Any]]) -> None:
    games = np.maximum(_series(rows, "games"), 1)
    shares = [_smooth(_series(rows, name) / games) for name in ("first_wins", "draws", "second_wins")]
    colours = [_COLOURS[name] for name in ("first", "draw", "second")]
    labels = ["first player wins", "draw", "second player wins"]
    panel.stackplot(_series(rows, "iteration"), shares, colors=colours, labels=labels, alpha=0.85)
    panel.set_title("results of self-play", fontsize=10)
    panel.set_ylim(0, 1)
    panel.legend(frameon=True, framealpha=0.85, edgecolor="none", fontsize=8, loc="lower left")


def _draw_mistakes(panel: Any, rows: list[dict[str, Any]]) -> None:
    iteration, count = _series(rows, "iteration"), _series(rows, "mistakes")
    panel.plot(iteration, count, color=_COLOURS["value"], linewidth=1.8, marker="o", markersize=3)
    # Linear near zero, so that no mistakes at all can be seen.
    panel.set_yscale("symlog", linthresh=1)
    panel.set_ylim(0, max(1.5, 1.5 * count.max()))
    panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_title("mistakes of the raw network, all positions", fontsize=10)
    panel.annotate(
        f"{count[-1]:.0f}", (iteration[-1], count[-1]), xytext=(0, 6), textcoords="offset points", ha="right"
    )


def _draw_ladder(panel: Any, rows: list[dict[str, Any]]) -> None:
    iteration = _series(rows, "iteration")
    panel.plot(iteration, _series(rows, "ladder_rating"), color=_COLOURS["first"], linewidth=1.8, label="Elo")
    panel.set_title("raw network above its beginning, Elo; score against", fontsize=10)
    scores = panel.twinx()
    scores.set_ylim(0, 1)
    scores.spines[["top"]].set_visible(False)
    names = [name for name in rows[0] if name.startswith("score_")]
    for name, colour in zip(names, _SCORES * len(names), strict=False):
        scores.plot(iteration, _series(rows, name), color=colour, linewidth=1.2, label=name.removeprefix("score_"))
    panel.legend(
        *map(list.__add__, panel.get_legend_handles_labels(), scores.get_legend_handles_labels()),
        frameon=False,
        fontsize=8,
    )
