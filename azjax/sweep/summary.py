"""The results of a sweep, with their spread over seeds."""

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.table import Table

from azjax.report.intervals import Interval, number
from azjax.report.plain_table import PlainTable
from azjax.sweep.points import Point
from azjax.sweep.study import Study


def best_first(study: Study, points: Sequence[Point]) -> list[Point]:
    """The complete points, from the best mean over seeds to the worst."""
    sign = 1 if study.objective.direction == "minimize" else -1
    complete = [point for point in points if point.state == "complete"]
    return sorted(complete, key=lambda point: sign * float(np.mean(point.values[-1])))


def counts(points: Sequence[Point]) -> str:
    """The number of points in each state, in words."""
    states = [point.state for point in points]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))


def points_table(study: Study, points: Sequence[Point], most: int) -> Table:
    """A table of the best points: mean and interval of the objective over seeds, and the settings.

    Args:
      study: the study.
      points: its points.
      most: largest number of rows.
    """
    table = PlainTable(f"{study.name}: best trials", box=box.SIMPLE_HEAD, padding=(0, 1))
    for heading in ("trial", f"{study.objective.unit}, mean (95%)"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("settings")
    for point in best_first(study, points)[:most]:
        settings = " ".join(f"{name}={number(point.params[name])}" for name in study.search)
        table.add_row(str(point.number), str(Interval.of(point.values[-1], study.objective.bounds)), settings)
    return table


def failures(points: Sequence[Point]) -> list[str]:
    """A line for each failed point."""
    return [f"trial {point.number} failed: {point.reason}" for point in points if point.state == "failed"]
