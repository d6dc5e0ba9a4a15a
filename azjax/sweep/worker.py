"""A worker of a sweep: it claims a point, trains its runs rung by rung, measures them and tells."""

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import jax

from azjax.runs import RunError, SettingsError, train_population
from azjax.runs.population import TRACED
from azjax.sweep.objective import Measure
from azjax.sweep.trials import Attempt, LostTrial, Trials

_POLL_SECONDS = 1.0


class Stopped(BaseException):
    """Ctrl-C or SIGTERM ended the work; what was trained is saved, and its trial is given back.

    Attributes:
      signal: which one.
    """

    def __init__(self, number: signal.Signals):
        super().__init__(number.name)
        self.signal = number


def work(
    trials: Trials, folder: Path, on_change: Callable[[], None] = lambda: None, points_at_once: int | None = None
) -> None:
    """Tries points until the study is over, also those that other workers leave behind.

    The runs of a point, which differ in their seeds, are one population; so are those of several points where all that
    is searched are numbers of `azjax.training.Hyper`.

    Args:
      trials: of the study.
      folder: of the study; the runs of point 12 go to `trial_00012/seed_0`, ...
      on_change: called when a trial has begun, come to its next rung or ended.
      points_at_once: how many points make a population, if they can; 1 on CPU and 8 elsewhere if None.

    Raises:
      Stopped: by a signal, which is served after the iteration under way.
      ValueError: the objective cannot be measured.
      RunError: what is no fault of a point's settings, as a full disk.
    """
    study = trials.study
    at_once = (1 if jax.default_backend() == "cpu" else 8) if points_at_once is None else points_at_once
    at_once = at_once if study.search.keys() <= TRACED else 1
    with stop_signals() as check:
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
                        leases.enter_context(trials.held(attempt))
                    _Work(trials, folder, measure, check, on_change).try_all(attempts)
                on_change()
            except (Stopped, RunError):
                # Those that are over stay so.
                for attempt in attempts:
                    trials.give_back(attempt)
                raise


@dataclasses.dataclass(frozen=True)
class _Work:
    """What is done with points that were claimed; attributes as the arguments of `work`."""

    trials: Trials
    folder: Path
    measure: Measure
    check: Callable[[], None]
    on_change: Callable[[], None]

    def try_all(self, attempts: list[Attempt]) -> None:
        """Trains the runs of all attempts, rung by rung, until each is finished, pruned, failed or lost.

        Raises:
          RunError: what is no fault of the settings.
          Stopped: a signal came.
        """
        going = [attempt for attempt in attempts if self._fits(attempt) and not self._is_done(attempt)]
        while going:
            due = self._together(going)
            try:
                worth = self._train(due)
            except (ValueError, SettingsError) as error:
                if len(due) > 1:
                    # It may be one of them, or too many of them.
                    for attempt in due:
                        self.try_all([attempt])
                else:
                    self._fail(due[0], str(error))
                staying = []
            else:
                pairs = zip(due, worth, strict=True)
                staying = [attempt for attempt, by_seed in pairs if not self._is_done(attempt, by_seed)]
            going = [attempt for attempt in going if attempt not in due] + staying
            self.on_change()

    def _together(self, attempts: list[Attempt]) -> list[Attempt]:
        """Those that are trained in one population with the first: runs of as many iterations, at the same one now."""
        first = attempts[0]
        if first.is_retry:  # killed anywhere
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
        """Of the runs of an attempt, up to its next rung."""
        study = self.trials.study
        return study.budget.iterations(study.config(attempt.params), len(attempt.values) + 1)

    def _fits(self, attempt: Attempt) -> bool:
        """Whether the settings can be those of a run; fails the attempt where they cannot."""
        try:
            self._iterations(attempt)
            return True
        except ValueError as error:
            self._fail(attempt, str(error))
            return False

    def _fail(self, attempt: Attempt, reason: str) -> None:
        with contextlib.suppress(LostTrial):
            self.trials.fail(attempt, reason)

    def _train(self, attempts: list[Attempt]) -> list[list[float]]:
        """Trains the runs of all of them up to their next rung; what each attempt is worth, by seed."""
        study = self.trials.study
        configs, folders = [], []
        for attempt in attempts:
            config = study.config(attempt.params).replace(iterations=self._iterations(attempt))
            for seed in range(study.seeds):
                configs.append(config.replace(seed=seed))
                folders.append(self.folder / f"trial_{attempt.number:05}" / f"seed_{seed}")
        results = train_population(study.game, configs, folders, resume=True)
        if results[0].stopped_by is not None:
            raise Stopped(results[0].stopped_by)
        self.check()
        worth = [self.measure(folder, config.seed) for folder, config in zip(folders, configs, strict=True)]
        return [worth[begin : begin + study.seeds] for begin in range(0, len(worth), study.seeds)]

    def _is_done(self, attempt: Attempt, by_seed: list[float] | None = None) -> bool:
        """Reports what was found at a rung, if anything, and ends the attempt where it is pruned or at its last one."""
        try:
            pruned = by_seed is not None and self.trials.report(attempt, by_seed)
            done = pruned or len(attempt.values) >= self.trials.study.budget.rungs
            if done:
                self.trials.finish(attempt, pruned=pruned)
            return done
        except LostTrial:
            return True


@contextlib.contextmanager
def stop_signals() -> Iterator[Callable[[], None]]:
    """Makes `Stopped` of signals, wherever they come; the second one acts as before.

    Yields:
      what raises it for a signal that `train` was asked to stop by when it had just ended.
    """
    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in (*stopping, signal.SIGUSR2)}

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for each in stopping:
            signal.signal(each, before[each])
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

    # Every signal is written there, whoever listens to it.
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        for number in stopping:
            signal.signal(number, stop)
        # What SLURM sends for submitit before a job's time is over.
        signal.signal(signal.SIGUSR2, terminate)
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(reader)
        os.close(writer)
