"""The workers of a sweep on this machine, and its progress bar."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from azjax.core.errors import FileError, RunError
from azjax.core.source import imported
from azjax.report.intervals import Interval
from azjax.sweep.points import Point
from azjax.sweep.study import Study
from azjax.sweep.summary import best_first, failures
from azjax.sweep.trials import Trials
from azjax.sweep.worker import raise_on_stop_signals, work

_POLL_SECONDS = 0.5
_PARENT = "AZJAX_SWEEP_PARENT"
"""The variable that tells a worker the number of the process that began it."""


def worker_command(path: str | Path, folder: Path, storage: str, lease: float) -> list[str]:
    """The command of a worker; it works from any folder.

    Args:
      path: path of STUDY.toml.
      folder: folder of the study.
      storage: path of a journal file, or address of a database.
      lease: see `Trials`.
    """
    where = storage if "://" in storage else str(Path(storage).absolute())
    command = [sys.executable, "-m", "azjax", "sweep", str(Path(path).absolute())]
    imports = [word for name in imported for word in ("--import", name)]
    return [*command, *imports, "--folder", str(folder.absolute()), "--storage", where, "--lease", str(lease)]


def end_with_parent() -> None:
    """A worker that `run_sweep` began stops, as after SIGTERM, when the process of `run_sweep` has ended."""
    parent = os.environ.pop(_PARENT, None)
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(_POLL_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def run_sweep(trials: Trials, folder: Path, command: Sequence[str], workers: int, console: Console) -> None:
    """Works on a study until it is over.

    Args:
      trials: the trials of the study.
      folder: the folder of the study.
      command: the command of a worker.
      workers: number of workers; a single one works in this process.
      console: where the progress bar is shown.

    Raises:
      Stopped: by Ctrl-C or SIGTERM; all workers have saved and released their points.
      RunError: all workers have ended and the study is not over, or no trial is complete.
      FileError: a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror}") from error
    with _Bar(trials.study, console) as bar:
        bar.show(trials.points())
        if workers == 1:
            work(trials, folder, lambda: bar.show(trials.points()))
        elif not trials.is_over():
            _supervise(trials, command, workers, bar)
    points = trials.points()
    if not best_first(trials.study, points):
        raise RunError("; ".join([f"no trial of {trials.study.name} is complete", *failures(points)[:1]]))


def _supervise(trials: Trials, command: Sequence[str], workers: int, bar: "_Bar") -> None:
    """Starts the workers, waits for them, and passes signals on to them."""
    with raise_on_stop_signals(), tempfile.TemporaryDirectory() as temporary:
        paths = [Path(temporary) / str(number) for number in range(workers)]
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for number, path in enumerate(paths):
                with path.open("w") as file:
                    # A new session, since the terminal sends Ctrl-C to all processes of its session, and a worker
                    # ends at once by the second signal.
                    process = subprocess.Popen(
                        command,
                        stdout=subprocess.DEVNULL,
                        stderr=file,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                        env={**os.environ, _PARENT: str(os.getpid())},
                    )
                processes.append(process)
                _give_cores(process.pid, number, workers)
            while any(process.poll() is None for process in processes):
                time.sleep(_POLL_SECONDS)
                bar.show(trials.points())
        except BaseException:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
            bar.show(trials.points())
            raise
        problems = [
            f"a worker ended with code {process.returncode}: {path.read_text().strip() or 'without a message'}"
            for process, path in zip(processes, paths, strict=True)
            if process.returncode
        ]
    if not trials.is_over():
        raise RunError("; ".join([*dict.fromkeys(problems), "the same command goes on with the study"]))
    for problem in dict.fromkeys(problems):
        print(f"azjax: {problem}", file=sys.stderr)


def _give_cores(process: int, number: int, workers: int) -> None:
    """Restricts a worker to its share of the cores: two workers that both use all cores take 1.5 times as long."""
    if hasattr(os, "sched_setaffinity"):  # Linux
        cores = sorted(os.sched_getaffinity(0))[number::workers]
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(process, cores or os.sched_getaffinity(0))


class _Bar:
    """The progress of a study: finished and running trials, the best one, the rate and the time left."""

    def __init__(self, study: Study, console: Console):
        self._study = study
        self._began, self._over_at_start = time.monotonic(), -1
        self._progress = Progress(
            BarColumn(12),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=86_400,  # trials take minutes and hours
        )
        self._task = self._progress.add_task("", total=study.trials * study.budget.rungs, status="")

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def show(self, points: Sequence[Point]) -> None:
        """Updates the bar."""
        rungs = self._study.budget.rungs
        over = sum(point.is_over for point in points)
        if self._over_at_start < 0:
            self._over_at_start = over
        status = [f"{over}/{self._study.trials} trials", f"{sum(point.state == 'running' for point in points)} running"]
        if over > self._over_at_start:
            hours = (time.monotonic() - self._began) / 3600
            status.append(f"{(over - self._over_at_start) / hours:.3g} an hour")
        if best := best_first(self._study, points):
            status.append(f"best {Interval.of(best[0].values[-1], self._study.objective.bounds)}")
        done = sum(rungs if point.is_over else len(point.values) for point in points)
        self._progress.update(self._task, completed=done, status=", ".join(status))
