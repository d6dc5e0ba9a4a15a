"""Figures of runs and ratings, drawn by Matplotlib (the extra `plot`). Axis letter: `T` rows of a metrics file."""

import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from azjax.core.errors import InputError
from azjax.core.files import write_atomically
from azjax.core.progress import duration
from azjax.evaluation import Ratings
from azjax.games.game import AnyGame
from azjax.report.intervals import elo_errors
from azjax.report.sample_games import Calibration
from azjax.runs import load_run
from azjax.runs.metrics import METRICS, TIMING, Row, read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes: TypeAlias = Any
    Figure: TypeAlias = Any

LEARNING_CURVE = "learning_curve.png"
_PICTURES = (".png", ".svg", ".pdf")
_BLUE, _ORANGE, _RED, _GREY, _LIGHT = "#2a6fbb", "#e0a458", "#c8553d", "#9aa0a6", "#dfe1e4"
_SCORE_COLORS = [_ORANGE, _RED, "#5b8c5a", "#7a5195", _GREY]


def check_picture(path: Path) -> None:
    """Checks, before a long work, that a picture can be saved to `path`.

    Raises:
      InputError: Matplotlib is not installed, or the suffix is that of no picture.
    """
    if path.suffix not in _PICTURES:
        raise InputError(f"plot must be a file of {', '.join(_PICTURES)}, got {path}")
    new_figure(1, 1)


def new_figure(width: float | int, height: float | int) -> Figure:
    """An empty figure; width and height are in inches. It does not use pyplot, which would choose a window system.

    Raises:
      InputError: Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise InputError("pictures need Matplotlib: pip install 'azjax[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Axes, x_label: str, grid: Literal["x", "y"] = "y") -> None:
    """Labels the x axis, removes the frame and draws light grid lines across the axis `grid`."""
    axes.set_xlabel(x_label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def svg_text(figure: Figure) -> str:
    """A figure as an SVG element. Its names are random: a page with several figures must not have one twice."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def draw_learning_curve(folder: str | Path) -> Path:
    """Draws the metrics of a run to `learning_curve.png` in its folder and returns the path.

    Raises:
      RunError: it is not a run folder.
      InputError: there are no metrics yet, or Matplotlib is not installed.
      FileError: the file cannot be written; an existing one is unchanged.
    """
    folder = Path(folder)
    game, _ = load_run(folder)
    rows, timing = read_rows(folder / METRICS), read_rows(folder / TIMING)
    if not rows:
        raise InputError(f"{folder} has no metrics to draw yet")
    save_picture(learning_figure(game, rows, timing), folder / LEARNING_CURVE)
    return folder / LEARNING_CURVE


def learning_figure(game: AnyGame, rows: list[Row], timing: list[Row]) -> Figure:
    """Losses, results of self-play, and mistakes and ladder ratings if they were measured, side by side.

    Args:
      game: that was learned.
      rows: of `metrics.jsonl`, at least one.
      timing: rows of `timing.jsonl`.

    Raises:
      InputError: Matplotlib is not installed.
    """
    seconds = sum(row["seconds"] for row in timing)
    drawn = _learning_panels(rows)
    figure = new_figure(max(11, 3.6 * len(drawn)), 3.4 if len(drawn) > 2 else 3.2)
    figure.suptitle(
        f"{game.name}: {rows[-1]['iteration']:,} iterations, {duration(seconds)} of self-play and updates", fontsize=12
    )
    for panel, draw in zip(figure.subplots(1, len(drawn)), drawn.values(), strict=True):
        draw(panel)
        tidy(panel, "iteration")
    return figure


def learning_figures(rows: list[Row], timing: list[Row]) -> dict[str, Figure]:
    """What was measured during a run, a figure of each, by name.

    These are the panels of `learning_figure`, then the agreement with the targets (which runs of the first version
    lack), the plies of a game, and simulations per second.

    Raises:
      InputError: Matplotlib is not installed.
    """
    drawn = _learning_panels(rows)
    if any("policy_accuracy" in row for row in rows):
        drawn["agreement"] = functools.partial(_draw_agreement, rows=rows)
    drawn["plies"] = functools.partial(_draw_plies, rows=rows)
    drawn["speed"] = functools.partial(_draw_speed, timing=timing)
    figures = {}
    for name, draw in drawn.items():
        figures[name] = new_figure(4.6, 3.2)
        panel = figures[name].subplots()
        draw(panel)
        tidy(panel, "iteration")
    return figures


def calibration_figure(calibration: Calibration) -> Figure:
    """Mean results by predicted value, with their intervals."""
    figure = new_figure(4.6, 3.6)
    panel = figure.subplots()
    results, ends = np.array(calibration.results), np.array(calibration.intervals)
    panel.plot([-1, 1], [-1, 1], color=_GREY, linewidth=1, linestyle="--")
    errors = np.maximum([results - ends[:, 0], ends[:, 1] - results], 0)
    panel.errorbar(calibration.predicted, results, errors, fmt="o", color=_BLUE, ms=4)
    panel.set_xlim(-1.05, 1.05)
    panel.set_ylim(-1.05, 1.05)
    panel.set_ylabel("mean result")
    panel.set_title("results by the network's value", fontsize=10)
    tidy(panel, "value, for the player to move")
    return figure


def draw_ratings(game: AnyGame, ratings: Ratings, path: str | Path) -> None:
    """Draws the ratings with their intervals to a picture file.

    Raises:
      InputError: Matplotlib is not installed.
      FileError: the file cannot be written; an existing one is unchanged.
    """
    figure = new_figure(7.0, 1.2 + 0.32 * len(ratings.players))
    panel = figure.subplots()
    heights = range(len(ratings.players), 0, -1)
    panel.errorbar(ratings.elo, heights, xerr=elo_errors(ratings.elo, ratings.intervals), fmt="o", color=_BLUE, ms=4)
    panel.set_yticks(heights, ratings.players, parse_math=False)
    panel.set_title(game.name, fontsize=10)
    tidy(panel, "Elo, with 95% intervals", grid="x")
    save_picture(figure, Path(path))


def save_picture(figure: Figure, path: Path) -> None:
    """Saves a figure; the suffix of `path` selects the format.

    Raises:
      FileError: the file cannot be written; an existing one is unchanged.
    """
    with write_atomically(path) as file:
        figure.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=150)


def _series(rows: Sequence[Row], name: str) -> Float[np.ndarray, "T"]:
    """A metric by row; NaN where it was not measured."""
    return np.array([np.nan if row.get(name) is None else row[name] for row in rows], float)


def _smooth(values: Float[np.ndarray, "T"]) -> Float[np.ndarray, "T"]:
    """A running mean of the finite values over a fiftieth of the run."""
    width = max(1, len(values) // 50)
    windows = (values[max(0, end - width) : end] for end in range(1, len(values) + 1))
    finite = (window[np.isfinite(window)] for window in windows)
    return np.array([window.mean() if len(window) else np.nan for window in finite], float)


def _learning_panels(rows: list[Row]) -> dict[str, Callable[[Axes], None]]:
    """What draws each panel of the learning figure, by name."""
    optional = {"mistakes": ("mistakes", _draw_mistakes), "ladder": ("ladder_rating", _draw_ladder)}
    panels: dict[str, Callable[[Axes], None]] = {
        "loss": functools.partial(_draw_losses, rows=rows),
        "results": functools.partial(_draw_results, rows=rows),
    }
    for name, (metric, draw) in optional.items():
        if measured := [row for row in rows if metric in row]:
            panels[name] = functools.partial(draw, rows=measured)
    return panels


def _draw_losses(panel: Axes, rows: list[Row]) -> None:
    iteration = _series(rows, "iteration")
    excess = _series(rows, "policy_loss") - _series(rows, "target_entropy")
    lines = (("policy (above its target's entropy)", excess, _BLUE), ("value", _series(rows, "value_loss"), _RED))
    for label, values, color in lines:
        panel.plot(iteration, values, color=color, alpha=0.2, linewidth=0.8)
        panel.plot(iteration, _smooth(values), color=color, label=label, linewidth=1.8)
    panel.set_title("loss", fontsize=10)
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=8)


def _draw_results(panel: Axes, rows: list[Row]) -> None:
    labels = {
        "first_wins": "first player wins",
        "draws": "draw",
        "second_wins": "second player wins",
        "truncated_games": "truncated",
    }
    counts = {name: np.nan_to_num(_series(rows, name)) for name in labels}
    if not counts["truncated_games"].any():
        del counts["truncated_games"]
    games = _smooth(sum(counts.values(), np.zeros(len(rows))))  # the games that ended in some iterations together
    shares = [np.divide(_smooth(count), games, out=np.zeros(len(rows)), where=games > 0) for count in counts.values()]
    panel.stackplot(
        _series(rows, "iteration"),
        shares,
        colors=[_BLUE, _GREY, _ORANGE, _LIGHT],
        labels=[labels[name] for name in counts],
        alpha=0.85,
    )
    panel.set_title("results of self-play", fontsize=10)
    panel.set_ylim(0, 1)
    panel.legend(frameon=True, framealpha=0.85, edgecolor="none", fontsize=8, loc="lower left")


def _draw_agreement(panel: Axes, rows: list[Row]) -> None:
    for name, color in (("policy", _BLUE), ("value", _RED)):
        panel.plot(_series(rows, "iteration"), _smooth(_series(rows, f"{name}_accuracy")), color=color, label=name)
    panel.set_ylim(0, 1)
    panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    panel.set_title("agreement with the targets", fontsize=10)
    panel.legend(frameon=False, fontsize=8)


def _draw_plies(panel: Axes, rows: list[Row]) -> None:
    panel.plot(_series(rows, "iteration"), _smooth(_series(rows, "plies_per_game")), color=_BLUE)
    panel.set_ylim(bottom=0)
    panel.set_title("plies of a game of self-play", fontsize=10)


def _draw_speed(panel: Axes, timing: list[Row]) -> None:
    panel.plot(_series(timing, "iteration"), _smooth(_series(timing, "simulations_per_second")), color=_BLUE)
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_title("simulations per second", fontsize=10)


def _draw_mistakes(panel: Axes, rows: list[Row]) -> None:
    iteration, count = _series(rows, "iteration"), _series(rows, "mistakes")
    panel.plot(iteration, count, color=_RED, linewidth=1.8, marker="o", markersize=3)
    # Linear near zero, so that zero mistakes are visible.
    panel.set_yscale("symlog", linthresh=1)
    panel.set_ylim(0, max(1.5, 1.5 * count.max()))
    panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_title("mistakes of the network alone, all positions", fontsize=10)
    panel.annotate(
        f"{count[-1]:.0f}", (iteration[-1], count[-1]), xytext=(0, 6), textcoords="offset points", ha="right"
    )


def _draw_ladder(panel: Axes, rows: list[Row]) -> None:
    iteration = _series(rows, "iteration")
    panel.plot(iteration, _series(rows, "ladder_rating"), color=_BLUE, linewidth=1.8, label="Elo")
    panel.set_title("network alone: Elo above its start; score against", fontsize=10)
    scores = panel.twinx()
    scores.set_ylim(0, 1)
    scores.spines[["top"]].set_visible(False)
    names = [name for name in rows[0] if name.startswith("score_")]
    for name, color in zip(names, _SCORE_COLORS * len(names), strict=False):
        scores.plot(iteration, _series(rows, name), color=color, linewidth=1.2, label=name.removeprefix("score_"))
    panel.legend(
        *map(list.__add__, panel.get_legend_handles_labels(), scores.get_legend_handles_labels()),
        frameon=False,
        fontsize=8,
    )
