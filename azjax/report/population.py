"""A population as a table: means over seeds, with intervals."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from azjax.report.intervals import Interval
from azjax.runs.metrics import METRICS, read_rows
from azjax.training import Config

_MEASURES = ("mistakes", "ladder_rating", "loss")


def population_table(configs: Sequence[Config], folders: Sequence[Path]) -> Table:
    """What the members last measured, by what varies between them beside the seed.

    Args:
      configs: of the members.
      folders: of their runs.
    """
    hypers = [dataclasses.asdict(config.hyper) for config in configs]
    varying = [name for name, value in hypers[0].items() if any(hyper[name] != value for hyper in hypers)]
    last = [_last(folder) for folder in folders]
    measures = [name for name in _MEASURES if all(name in row for row in last)]
    table = Table(title="population", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for column in ("members", *varying, "seeds", *measures):
        table.add_column(column, justify="left" if column == "members" else "right")
    points: dict[tuple, list[int]] = {}
    for number, hyper in enumerate(hypers):
        points.setdefault(tuple(hyper[name] for name in varying), []).append(number)
    for point, members in points.items():
        named = folders[members[0]].name + (f" to {folders[members[-1]].name}" if len(members) > 1 else "")
        means = (Interval.of([last[number][measure] for number in members]) for measure in measures)
        table.add_row(named, *(f"{value:g}" for value in point), str(len(members)), *map(str, means))
    table.caption = "means over seeds, with 95% intervals" if len(points) < len(configs) else None
    return table


def _last(folder: Path) -> dict[str, Any]:
    """What the run last measured, by name."""
    measured: dict[str, Any] = {}
    for row in read_rows(folder / METRICS):
        measured |= {name: value for name, value in row.items() if value is not None}
    return measured
