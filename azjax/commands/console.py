"""What commands print on."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(highlight=False, markup=False)


def say(text: str) -> None:
    """Prints one line, which is never broken, so that paths can be copied."""
    console.print(text, soft_wrap=True)


def progress_bar(unit: str) -> Progress:
    """A bar with the number of units (such as games) done, the time taken and the time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} {unit}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
