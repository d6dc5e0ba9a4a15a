"""What the studies share: where results and pictures go, agents trained with their presets, and how a panel looks."""

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

COLOURS = ("#2a6fbb", "#c8553d", "#e0a458", "#5b8c5a", "#7a5195", "#4c4c4c")
GREY = "#9aa0a6"


class Run(NamedTuple):
    """A run that has ended.

    Attributes:
      folder: where it lies.
      config: its own.
      steps: iterations whose checkpoints are kept, rising.
    """

    folder: Path
    config: Config
    steps: list[int]

    def seconds(self, step: int) -> float:
        """Of training up to a step, with what it measured on the way."""
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
    """Trains with a configuration, that of the game's preset by default; a run that is there goes on, or is taken.

    A signal that ended the training ends the study too, with the exit code that it asks for.
    """
    config = (azjax.preset(game) if config is None else config).replace(seed=seed)
    if iterations is not None:
        config = config.replace(iterations=iterations)
    result = azjax.train(game, config, folder, resume=True, console=console)
    if result.stopped_by is not None:
        sys.exit(128 + result.stopped_by)
    return Run(folder, config, Checkpoints(folder / CHECKPOINTS).steps())


def write_results(path: Path, study: str, settings: dict[str, Any], **parts: Any) -> None:
    """The file of a study: its command, its settings, this machine, and its parts."""
    report = {"command": f"python experiments/{study}", "settings": settings, "machine": machine(), **parts}
    write_report(report, path)


def wide_figure(columns: int, width: float = 11, height: float = 3.6, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure of panels side by side. Not by pyplot, which would choose a window system."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, columns, **options)))


def style(panel: Axes, title: str, x: str, *, shares: bool = False, legend: bool = True) -> None:
    """Title, name of the x axis, and little ink; after all is drawn. Shares are told in percent."""
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
    """As a picture of the file's ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
