"""The progress bar of a run."""

from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def progress_bar(console: Console) -> Progress:
    """A bar of at most 80 columns; tasks have the field `status`, see `status_of`."""
    return Progress(
        BarColumn(12), MofNCompleteColumn(), TextColumn("{task.fields[status]}"), TimeRemainingColumn(), console=console
    )


def status_of(row: Mapping[str, float], games_per_second: float, simulations_per_second: float) -> str:
    """The latest metrics and rates in a few words."""
    words = [f"loss {row['loss']:.2f}"]
    if "mistakes" in row:
        words.append(f"{row['mistakes']:.0f} mistakes")
    if "ladder_rating" in row:
        words.append(f"{row['ladder_rating']:+.0f} Elo")
    rates = [f"{_thousands(games_per_second)} games/s", f"{_thousands(simulations_per_second)} simulations/s"]
    return ", ".join([*words, *rates])


def _thousands(rate: float) -> str:
    return f"{rate / 1000:.1f}k" if rate < 10_000 else f"{rate / 1000:,.0f}k"
