"""What commands print on."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from azjax.core.progress import SECONDS_BETWEEN_LINES, duration


class _Console(Console):
    """A console that leaves a closed pipe to `azjax.errors`, where it has its exit code; Rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise  # this is called while the error is handled


console = _Console(highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    """Prints one line, which is never broken, so that paths can be copied."""
    console.print(text, soft_wrap=True)


def progress_bar(unit: str) -> Progress:
    """A bar with the number of units (such as games) done, the time taken and the time left.

    Where the console is no terminal, such as a file, it is a line now and then.
    """
    if not console.is_terminal:
        return _Lines(unit)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} {unit}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


class _Lines(Progress):
    """Prints a line at most every `SECONDS_BETWEEN_LINES`, with what the bar shows.

    unit: of what is counted.
    """

    def __init__(self, unit: str):
        super().__init__(console=console, disable=True)
        self._unit = unit
        self._began = self._line_at = time.monotonic()

    def reset(self, task_id: TaskID, **changes: Any) -> None:
        super().reset(task_id, **changes)
        self._began = time.monotonic()

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        now, (task,) = time.monotonic(), self.tasks
        if now - self._line_at < SECONDS_BETWEEN_LINES:
            return
        self._line_at = now
        taken, total = now - self._began, "" if task.total is None else f" of {task.total:,.0f}"
        line = f"{task.description}: {task.completed:,.0f}{total} {self._unit}, {duration(taken)}"
        if task.total and task.completed:
            line += f", {duration(taken * (task.total / task.completed - 1))} left"
        say(line)
