"""`azjax sweep STUDY.toml` and `azjax sweep show STUDY.toml`. Optuna and submitit are extras: imported late."""

import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from azjax.commands.arguments import first_word, parse
from azjax.commands.console import console, say
from azjax.core.errors import InputError

if TYPE_CHECKING:
    from azjax.sweep import Trials


@dataclasses.dataclass(frozen=True)
class SweepOptions:
    """Searches for the best settings. The same command continues the study, and on another machine joins it.

    Attributes:
      folder: folder of the study and its runs. Default: sweeps/STUDY.
      storage: path of a journal file that all workers reach, or address of a database, such as
        postgresql+psycopg://USER@HOST/NAME. Default: FOLDER/journal.log.
      workers: processes on this machine, or jobs of the SLURM array.
      slurm: submit the workers to SLURM instead.
      lease: a worker without a sign of life for this many seconds counts as dead; the same for all workers.
    """

    folder: Path | None = None
    storage: str | None = None
    workers: int = 1
    slurm: bool = False
    lease: float = 60.0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers must be at least 1, got {self.workers}")
        if not 0 < self.lease < math.inf:
            raise InputError(f"lease must be a number above 0, got {self.lease}")


@dataclasses.dataclass(frozen=True)
class ShowOptions:
    """Shows the best trials of a sweep so far, and writes a page.

    Attributes:
      folder: folder of the study. Default: sweeps/STUDY.
      storage: path of a journal file, or address of a database. Default: FOLDER/journal.log.
      best: rows of the table.
    """

    folder: Path | None = None
    storage: str | None = None
    best: int = 10

    def __post_init__(self) -> None:
        if self.best < 1:
            raise InputError(f"best must be at least 1, got {self.best}")


def sweep_command(arguments: list[str]) -> None:
    """Runs a sweep, submits it, or shows it."""
    try:
        from azjax import sweep
    except ModuleNotFoundError as error:
        raise InputError(f"a sweep needs {error.name}: pip install 'azjax[sweep]'") from error
    is_shown = arguments[:1] == ["show"]
    command = "sweep show" if is_shown else "sweep"
    options: SweepOptions | ShowOptions = ShowOptions() if is_shown else SweepOptions()
    path, arguments = first_word(command, "STUDY.toml", options, arguments[is_shown:])
    options = parse(f"{command} {path}", options, arguments)
    study = sweep.load_study(path)
    folder = Path("sweeps") / study.name if options.folder is None else options.folder
    storage = str(folder / sweep.JOURNAL) if options.storage is None else options.storage
    with sweep.database_errors():
        if isinstance(options, ShowOptions):
            trials = sweep.Trials(study, sweep.connect(storage, must_exist=True), must_exist=True)
            _print_best(trials, options.best)
            say(f"page: {sweep.write_page(trials, folder)}")
            return
        trials = sweep.Trials(study, sweep.connect(storage), lease=options.lease, folder=folder)
        worker = sweep.worker_command(path, folder, storage, options.lease)
        if options.slurm:
            from azjax.sweep.slurm import submit

            jobs = submit(worker, folder / "slurm", options.workers, study.slurm, name=study.name)
            say(f"submitted: {', '.join(job.job_id for job in jobs)}")
            return
        sweep.end_with_parent()
        try:
            sweep.run_sweep(trials, folder, worker, options.workers, console)
        except sweep.Stopped as stopped:
            say("stopped; the trained agents are saved, and the same command continues")
            sys.exit(128 + stopped.signal)
        _print_best(trials, ShowOptions.best)


def _print_best(trials: "Trials", best: int) -> None:
    from azjax.sweep import failures, points_table

    points = trials.points()
    console.print(points_table(trials.study, points, best))
    for failure in failures(points):
        say(failure)
