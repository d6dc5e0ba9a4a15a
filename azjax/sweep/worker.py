"""A worker of a sweep: it claims a point, trains its runs rung by rung, measures them and reports."""

import contextlib
import dataclasses
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import jax

from azjax.core.errors import FileError, InputError, LockedError, MemoryInUseError, RunError, SettingsError
from azjax.core.signals import discard_output, output_on_terminals, stop_signals
from azjax.runs import TrainResult, train_population
from azjax.sweep.objective import Measure
from azjax.sweep.trials import Attempt, LeaseExpired, Trials
from azjax.training import Config
from azjax.training.hyper import HYPER_FIELDS

_POLL_SECONDS = 1.0


class Stopped(BaseException):
    """Ctrl-C or SIGTERM ended the work. The runs are saved, and their points released for other attempts.

    Attributes:
      signal: the signal.
    """

    def __init__(self, number: signal.Signals):
        super().__init__(number.name)
        self.signal = number


def work(
    trials: Trials, folder: Path, on_change: Callable[[], None] = lambda: None, points_at_once: int | None = None
) -> None:
    """Tries points until the study is over, including points that other workers have released.

    The runs of a point, which differ in their seeds, are trained as one population. If all searched settings are fields
    of `azjax.training.Hyper`, the runs of several points are.

    Args:
      trials: the trials of the study.
      folder: the folder of the study; the runs of point 12 go to `trial_00012/seed_0`, ...
      on_change: called when a trial has begun, reached its next rung or ended.
      points_at_once: number of points in a population, if possible; 1 on CPU and 8 elsewhere if None.

    Raises:
      Stopped: after a signal, at the end of the current iteration.
      InputError: the objective cannot be measured.
      RunError: an error that the settings of a point have not caused.
      FileError: for example, the disk is full.
    """
    study = trials.study
    at_once = (1 if jax.default_backend() == "cpu" else 8) if points_at_once is None else points_at_once
    at_once = at_once if study.search.keys() <= HYPER_FIELDS else 1
    with raise_on_stop_signals() as check:
        if trials.is_over():
            return
        measure = study.objective.prepare(study.game)
        while not trials.is_over():
            attempts: list[Attempt] = []
            try:
                while len(attempts) < at_once and (attempt := trials.claim()) is not None:
                    attempts.append(attempt)
                on_change()
                if not attempts:
                    time.sleep(_POLL_SECONDS)
                    continue
                with contextlib.ExitStack() as leases:
                    for attempt in attempts:
                        leases.enter_context(trials.keep_lease(attempt))
                    _Worker(trials, folder, measure, check, on_change).try_all(attempts)
                on_change()
            except (Stopped, RunError, FileError, InputError):
                for attempt in attempts:
                    trials.release(attempt)
                raise


@dataclasses.dataclass(frozen=True)
class _Worker:
    """Tries the points that were claimed; the attributes are the arguments of `work`."""

    trials: Trials
    folder: Path
    measure: Measure
    check: Callable[[], None]
    on_change: Callable[[], None]

    def try_all(self, attempts: list[Attempt]) -> None:
        """Trains the runs of all attempts, rung by rung, until each is finished, pruned, failed or lost; see `work`."""
        going = [attempt for attempt in attempts if self._fits(attempt) and not self._is_done(attempt)]
        while going:
            due = self._trainable_together(going)
            try:
                runs = self._train(due)
            except (InputError, SettingsError) as error:
                if len(due) > 1:
                    # One of them may be the cause, or their number.
                    for attempt in due:
                        self.try_all([attempt])
                elif isinstance(error, MemoryInUseError):
                    # Not the fault of the point: it is released, and this worker ends.
                    raise RunError(f"trial {due[0].number}: {error}") from error
                else:
                    self._fail(due[0], str(error))
                staying = []
            else:
                pairs = zip(due, self._measure(runs), strict=True)
                staying = [attempt for attempt, by_seed in pairs if not self._is_done(attempt, by_seed)]
            going = [attempt for attempt in going if attempt not in due] + staying
            self.on_change()

    def _trainable_together(self, attempts: list[Attempt]) -> list[Attempt]:
        """The attempts that can be trained in one population with the first: equal iterations done and left to do."""
        first = attempts[0]
        if first.is_retry:  # its runs may be at different iterations
            return [first]
        iterations = self._iterations(first)
        return [
            attempt
            for attempt in attempts
            if not attempt.is_retry
            and len(attempt.values) == len(first.values)
            and self._iterations(attempt) == iterations
        ]

    def _iterations(self, attempt: Attempt) -> int:
        """The iterations of the runs of an attempt up to its next rung."""
        study = self.trials.study
        return study.budget.iterations(study.config(attempt.params), len(attempt.values) + 1)

    def _fits(self, attempt: Attempt) -> bool:
        """Whether the settings make a valid configuration; fails the attempt if they do not."""
        try:
            self._iterations(attempt)
            return True
        except InputError as error:
            self._fail(attempt, str(error))
            return False

    def _fail(self, attempt: Attempt, reason: str) -> None:
        with contextlib.suppress(LeaseExpired):
            self.trials.fail(attempt, reason)

    def _train(self, attempts: list[Attempt]) -> list[tuple[Path, int]]:
        """Trains the runs of the attempts up to their next rung; returns their folders and seeds."""
        study = self.trials.study
        configs, folders = [], []
        for attempt in attempts:
            config = study.config(attempt.params).replace(iterations=self._iterations(attempt))
            for seed in range(study.seeds):
                configs.append(config.replace(seed=seed))
                folders.append(self.folder / f"trial_{attempt.number:05}" / f"seed_{seed}")
        results = self._train_population(configs, folders)
        if results[0].stopped_by is not None:
            raise Stopped(results[0].stopped_by)
        self.check()
        return [(folder, config.seed) for folder, config in zip(folders, configs, strict=True)]

    def _measure(self, runs: list[tuple[Path, int]]) -> list[list[float]]:
        """The objective of each attempt, by seed."""
        values, seeds = [self.measure(folder, seed) for folder, seed in runs], self.trials.study.seeds
        return [values[first : first + seeds] for first in range(0, len(values), seeds)]

    def _train_population(self, configs: list[Config], folders: list[Path]) -> list[TrainResult]:
        """Trains the runs, after another process that trains in their folders has ended.

        A worker that is held up for longer than its lease loses its points, and trains on until it reports.
        """
        told = False
        while True:
            try:
                return train_population(self.trials.study.game, configs, folders, resume=True)
            except LockedError as error:
                if not told:
                    warnings.warn(f"{error}; waiting for its end", stacklevel=2)
                told = True
                time.sleep(_POLL_SECONDS)

    def _is_done(self, attempt: Attempt, by_seed: list[float] | None = None) -> bool:
        """Reports the objective at a rung, if given, and ends the attempt if it is pruned or was at its last rung."""
        try:
            pruned = by_seed is not None and self.trials.report(attempt, by_seed)
            done = pruned or len(attempt.values) >= self.trials.study.budget.rungs
            if done:
                self.trials.finish(attempt, pruned=pruned)
            return done
        except LeaseExpired:
            return True


@contextlib.contextmanager
def raise_on_stop_signals() -> Iterator[Callable[[], None]]:
    """Raises `Stopped` when a signal arrives; the second signal acts as usual.

    Yields:
      a function that raises `Stopped` if a signal arrived so late in `train` that it ended without noticing.
    """
    stopping, terminals = stop_signals(), output_on_terminals()
    before = {number: signal.getsignal(number) for number in (*stopping, signal.SIGUSR2)}

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for each in stopping:
            signal.signal(each, before[each])
        if number == signal.SIGHUP:
            discard_output(terminals)
        raise Stopped(signal.Signals(number))

    def terminate(number: int, frame: FrameType | None) -> None:
        del number, frame
        os.kill(os.getpid(), signal.SIGTERM)

    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)

    def check() -> None:
        with contextlib.suppress(BlockingIOError):
            for number in os.read(reader, 4096):
                if number in stopping:
                    raise Stopped(signal.Signals(number))

    # Python writes every signal there, whatever its handler.
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        for number in stopping:
            signal.signal(number, stop)
        # SLURM sends it for submitit before the time of a job is over.
        signal.signal(signal.SIGUSR2, terminate)
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(reader)
        os.close(writer)
