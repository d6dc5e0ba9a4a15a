"""Code that the studies share: output folders, training with a preset, result files, and the style of figures."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

import azjax
from azjax.benchmark.report import machine, write_report
from azjax.games.game import Game
from azjax.runs import Checkpoints
from azjax.runs.metrics import TIMING, read_rows
from azjax.runs.run_folder import CHECKPOINTS
from azjax.training import Config

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
DOCS = ROOT / "docs"
RUNS = ROOT / "runs"

COLORS = ("#2a6fbb", "#c8553d", "#e0a458", "#5b8c5a", "#7a5195", "#4c4c4c")
GRAY = "#9aa0a6"


class Run(NamedTuple):
    """A finished run.

    Attributes:
      folder: the run folder.
      config: the configuration of the run.
      steps: iterations of the kept checkpoints, ascending.
    """

    folder: Path
    config: Config
    steps: list[int]

    def seconds(self, step: int) -> float:
        """Seconds of training and of evaluation up to iteration `step`."""
        rows = read_rows(self.folder / TIMING)[:step]
        return round(sum(row["seconds"] + row["evaluation_seconds"] for row in rows), 1)


def trained(
    game: Game,
    folder: Path,
    console: Console,
    *,
    seed: int = 0,
    iterations: int | None = None,
    config: Config | None = None,
) -> Run:
    """Trains with `config`, by default the game's preset. Resumes an unfinished run and reuses a finished one.

    A signal that stops the training also ends the study, with the exit code of that signal.
    """
    config = (azjax.preset(game) if config is None else config).replace(seed=seed)
    if iterations is not None:
        config = config.replace(iterations=iterations)
    result = azjax.train(game, config, folder, resume=True, console=console)
    if result.stopped_by is not None:
        sys.exit(128 + result.stopped_by)
    return Run(folder, config, Checkpoints(folder / CHECKPOINTS).steps())


def write_results(path: Path, study: str, settings: dict[str, Any], **parts: Any) -> None:
    """Writes the result file of a study: its command, its settings, this machine, and `parts`."""
    report = {"command": f"python experiments/{study}", "settings": settings, "machine": machine(), **parts}
    write_report(report, path)


def wide_figure(columns: int, width: float = 11, height: float = 3.6, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `columns` panels side by side. It avoids pyplot, which would choose a window system."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, columns, **options)))


def style(panel: Axes, title: str, x: str, *, shares: bool = False, legend: bool = True) -> None:
    """Sets title, x label, grid and legend. Call it after drawing. `shares` formats the y axis in percent."""
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(x)
    if shares:
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    if legend:
        panel.legend(frameon=False, fontsize=8)


def save_figure(figure: Figure, path: Path) -> None:
    """Saves the figure; the suffix of `path` selects the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
