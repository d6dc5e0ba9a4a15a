"""The page of a sweep: one self-contained HTML file."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import optuna

from azjax.core.errors import FileError, InputError
from azjax.core.files import write_text
from azjax.games.registry import options_of
from azjax.report.figures import new_figure, svg_text, tidy
from azjax.report.intervals import Interval, number
from azjax.report.templates import needs_report_packages, render
from azjax.sweep.points import Point
from azjax.sweep.study import Choices, Range, Study
from azjax.sweep.summary import best_first, counts, failures
from azjax.sweep.trials import Trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes: TypeAlias = Any
    Figure: TypeAlias = Any

PAGE = "sweep.html"
_COLORS = ("#2a6fbb", "#c8553d", "#5b8c5a", "#e0a458", "#7a5195")
_GREY = "#9aa0a6"


def write_page(trials: Trials, folder: Path) -> Path:
    """Writes `sweep.html` into the folder of the study.

    Args:
      trials: the trials of the study.
      folder: the folder of the study.

    Returns:
      the path of the file.

    Raises:
      InputError: no trial is complete yet, or Matplotlib or Jinja is not installed.
      FileError: the file cannot be written.
    """
    needs_report_packages()
    study, points = trials.study, trials.points()
    best = best_first(study, points)
    if not best:
        raise InputError(f"no trial of {study.name} is complete yet, so that there is nothing to show")
    importances = importances_of(trials)
    pictures = {
        "curves": svg_text(_curves(study, best)),
        "importances": svg_text(_importances(importances)) if importances else "",
        "slices": svg_text(_slices(study, best)),
        "parallel": svg_text(_parallel(study, best)),
    }
    content = {
        "title": f"{study.name}: a sweep of {study.game.name}",
        "facts": facts(study, points),
        "study": study,
        "rows": [_row(study, point) for point in best],
        "failures": failures(points),
        "pictures": pictures,
    }
    page = render(f"{PAGE}.jinja", content, "azjax.sweep")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror}") from error
    write_text(folder / PAGE, page)
    return folder / PAGE


def importances_of(trials: Trials) -> dict[str, float]:
    """The importance of each setting for being among the best tenth of the complete trials; they sum to 1.

    By PED-ANOVA (Watanabe et al. 2023). Empty if too few points are complete.
    """
    study = trials.optuna_study
    if len({trial.value for trial in study.get_trials(states=[optuna.trial.TrialState.COMPLETE])}) < 2:
        return {}
    importances: dict[str, float] = optuna.importance.get_param_importances(study)
    return importances


def facts(study: Study, points: Sequence[Point]) -> dict[str, str]:
    """The main facts of the study, by name."""
    budget, options = study.budget, ", ".join(f"{name}={value}" for name, value in options_of(study.game).items())
    return {
        "game": study.game.name + (f" ({options})" if options else ""),
        "objective": f"{study.objective.unit}, to {study.objective.direction}",
        "each run": f"{budget.spent(budget.rungs):,.0f} {budget.unit} in {budget.rungs} rungs, {study.seeds} seeds",
        "search": f"{study.sampler}, pruner {study.pruner}",
        "trials": f"{counts(points)}, of {study.trials}",
    }


def _row(study: Study, point: Point) -> list[str]:
    settings = [number(point.params[name]) for name in study.search]
    seeds = ", ".join(number(value) for value in point.values[-1])
    return [str(point.number), str(Interval.of(point.values[-1], study.objective.bounds)), seeds, *settings]


def _curves(study: Study, best: Sequence[Point]) -> Figure:
    """The objective by the spent budget: means over seeds, and their intervals as bands."""
    figure = new_figure(8, 4)
    panel = figure.subplots()
    spent = [study.budget.spent(rung) for rung in range(1, study.budget.rungs + 1)]
    for point, color in zip(best, _COLORS, strict=False):
        intervals = [Interval.of(by_seed, study.objective.bounds) for by_seed in point.values]
        means, low, high = np.array([(each.mean, each.low, each.high) for each in intervals]).T
        panel.plot(spent, means, color=color, marker="o", markersize=3, label=f"trial {point.number}")
        if not math.isnan(low[0]):
            panel.fill_between(spent, low, high, color=color, alpha=0.15, linewidth=0)
    panel.set_ylabel(study.objective.unit)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    _stay_within(panel, study.objective.bounds)
    panel.legend(frameon=False, fontsize=8)
    tidy(panel, study.budget.unit)
    return figure


def _importances(importances: dict[str, float]) -> Figure:
    figure = new_figure(6, 0.6 + 0.35 * len(importances))
    panel = figure.subplots()
    names = list(importances)[::-1]
    panel.barh(names, [importances[name] for name in names], color=_COLORS[0])
    panel.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    tidy(panel, "importance for being among the best tenth of the trials")
    return figure


def _slices(study: Study, best: Sequence[Point]) -> Figure:
    """The objective by each setting, with its interval."""
    columns = min(3, len(study.search))
    rows = -(-len(study.search) // columns)
    figure = new_figure(3.6 * columns, 2.9 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    intervals = [Interval.of(point.values[-1], study.objective.bounds) for point in best]
    means = [each.mean for each in intervals]
    around = None
    if not math.isnan(intervals[0].low):
        around = [[each.mean - each.low for each in intervals], [each.high - each.mean for each in intervals]]
    for panel, (name, values) in zip(panels, study.search.items(), strict=False):
        positions = [_axis_position(values, point.params[name]) for point in best]
        panel.errorbar(positions, means, around, fmt="o", color=_COLORS[0], ecolor=_GREY, elinewidth=0.8, markersize=4)
        if isinstance(values, Choices):
            panel.set_xticks(range(len(values.choices)), [number(value) for value in values.choices])
            panel.set_xlim(-0.5, len(values.choices) - 0.5)
        elif values.log:
            panel.set_xticks(*_decades(values))
        tidy(panel, name)
    for panel in panels[len(study.search) :]:
        panel.set_visible(False)
    _stay_within(panels[0], study.objective.bounds)
    for panel in panels[::columns]:
        panel.set_ylabel(study.objective.unit)
    return figure


def _parallel(study: Study, best: Sequence[Point]) -> Figure:
    """One line for each point through all settings to the objective; better points are darker."""
    figure = new_figure(max(6, 1.7 * (len(study.search) + 1)), 3.8)
    panel = figure.subplots()
    means = np.array([np.mean(point.values[-1]) for point in best])
    columns = [
        np.array([_share(values, point.params[name]) for point in best]) for name, values in study.search.items()
    ]
    span = float(np.ptp(means)) or 1.0
    lines = np.stack([*columns, (means - means.min()) / span], axis=1)
    for rank in reversed(range(len(best))):
        darkness = 1 - rank / len(best)
        panel.plot(lines[rank], color=_COLORS[0], alpha=0.15 + 0.85 * darkness**2, linewidth=0.6 + 1.4 * darkness)
    for column, values in enumerate(study.search.values()):
        marks = values.choices if isinstance(values, Choices) else [values.low, values.high]
        for mark in marks:
            panel.annotate(
                number(mark), (column, _share(values, mark)), xytext=(3, 2), textcoords="offset points", size=7
            )
    for share, mean in ((0, means.min()), (1, means.max())):
        panel.annotate(number(float(mean)), (len(columns), share), xytext=(3, 2), textcoords="offset points", size=7)
    panel.set_xticks(range(len(columns) + 1), [*study.search, study.objective.unit], fontsize=8)
    panel.set_yticks([])
    panel.spines[["top", "right", "left", "bottom"]].set_visible(False)
    panel.grid(axis="x", color=_GREY, linewidth=0.8)
    panel.set_xlim(-0.1, len(columns) + 0.4)
    return figure


def _stay_within(panel: Axes, bounds: tuple[float, float]) -> None:
    """Ends the vertical axis at the bounds of what it shows."""
    low, high = panel.get_ylim()
    panel.set_ylim(max(low, bounds[0]), min(high, bounds[1]))


def _axis_position(values: Range | Choices, value: Any) -> float:
    """The position of a value on the axis of its setting."""
    if isinstance(values, Choices):
        return float(values.choices.index(value))
    return math.log10(value) if values.log else float(value)


def _share(values: Range | Choices, value: Any) -> float:
    """The position of a value between the ends of its axis, 0..1."""
    ends = (values.choices[0], values.choices[-1]) if isinstance(values, Choices) else (values.low, values.high)
    low, high = (_axis_position(values, end) for end in ends)
    return (_axis_position(values, value) - low) / (high - low)


def _decades(values: Range) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis: its ends and their geometric mean."""
    marks = np.geomspace(values.low, values.high, 3)
    return [math.log10(mark) for mark in marks], [f"{mark:.2g}" for mark in marks]
