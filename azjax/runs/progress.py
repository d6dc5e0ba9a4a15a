"""How far a run is: a bar in a terminal, and elsewhere a line now and then."""

import math
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from azjax.core.progress import SECONDS_BETWEEN_LINES, duration
from azjax.runs.callback import Callback, Update
from azjax.training.config import Config


class TrainingProgress(Callback):
    """Shows iterations, the latest metrics (their means over a population), rates and the time left.

    Args:
      console: where. What is not a terminal, such as a file, gets a line for the first iteration, for the last, and
        between them at most every `SECONDS_BETWEEN_LINES`.
    """

    def __init__(self, console: Console):
        self._console = console
        self._bar = Progress(
            BarColumn(12),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("")
        self._runs: dict[Path, Update | None] = {}
        self._latest: dict[str, float] = {}
        self._games = 0.0
        self._first = 0
        self._began = self._line_at = time.monotonic()

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        self._runs[folder] = None
        self._first = iteration
        self._began = time.monotonic()
        self._bar.update(self._task, total=config.iterations, completed=iteration)
        self._bar.start()

    def __call__(self, update: Update) -> None:
        self._runs[update.folder] = update
        updates = [each for each in self._runs.values() if each is not None and each.iteration == update.iteration]
        if len(updates) < len(self._runs):
            return
        names = [name for name in update.metrics if all(name in each.metrics for each in updates)]
        self._latest |= {name: sum(each.metrics[name] for each in updates) / len(updates) for name in names}
        self._games += sum(each.metrics["games"] for each in updates)
        rates = [sum(each.timing[f"{what}_per_second"] for each in updates) for what in ("games", "simulations")]
        status = status_of(self._latest, *rates)
        self._bar.update(self._task, completed=update.iteration, description=status)
        if not self._console.is_terminal:
            self._line(update, status)

    def end(self) -> None:
        self._bar.stop()

    def _line(self, update: Update, status: str) -> None:
        now = time.monotonic()
        done, left = update.iteration - self._first, update.iterations - update.iteration
        if done > 1 and left and now - self._line_at < SECONDS_BETWEEN_LINES:
            return
        self._line_at = now
        seconds = (now - self._began) / done * left
        self._console.print(
            f"iteration {update.iteration:,} of {update.iterations:,}, {status}, {self._games:,.0f} games, "
            f"{duration(seconds)} left",
            highlight=False,
            soft_wrap=True,
        )


def status_of(row: Mapping[str, float], games_per_second: float, simulations_per_second: float) -> str:
    """The latest metrics and rates in a few words."""
    without_loss = "every update was skipped" if row.get("skipped_updates") else "no game has ended yet"
    words = [without_loss if math.isnan(row["loss"]) else f"loss {row['loss']:.2f}"]
    if "mistakes" in row:
        words.append(f"{row['mistakes']:.0f} mistakes")
    if "ladder_rating" in row:
        words.append(f"{row['ladder_rating']:+z.0f} Elo")
    # The opponents of a ladder are listed from weak to strong: the last tells the most.
    scores = [name for name in row if name.startswith("score_")]
    words += [f"{row[name]:.0%} against {name.removeprefix('score_')}" for name in scores[-1:]]
    rates = [f"{_rate(games_per_second)} games/s", f"{_rate(simulations_per_second)} simulations/s"]
    return ", ".join([*words, *rates])


def _rate(rate: float) -> str:
    """Two digits at least."""
    if rate < 9.95:
        return f"{rate:.1f}"
    if rate < 999.5:
        return f"{rate:.0f}"
    return f"{rate / 1000:.1f}k" if rate < 10_000 else f"{rate / 1000:,.0f}k"
