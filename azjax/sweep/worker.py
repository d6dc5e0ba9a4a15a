"""A worker of a sweep: it claims a point, trains its runs rung by rung, measures them and tells."""

import contextlib
import dataclasses
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import jax

from azjax.sweep.objective import Measure
from azjax.sweep.trials import Attempt, LostTrial, Trials
from azjax.training import RunError, train_population
from azjax.training.population import TRACED

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
            attempts = list(itertools.islice(iter(trials.claim, None), at_once))
            on_change()
            if not attempts:
                time.sleep(_POLL_SECONDS)
                continue
            with contextlib.ExitStack() as leases:
                for attempt in attempts:
                    leases.enter_context(trials.held(attempt))
                _Work(trials, folder, measure, check, on_change).try_all(attempts)
            on_change()


@dataclasses.dataclass(frozen=True)
class _Work:
    """What is done with points that were claimed; attributes as the arguments of `work`."""

    trials: Trials
    folder: Path
    measure: Measure
    check: Callable[[], None]
    on_change: Callable[[], None]

    def try_all(self, attempts: list[Attempt]) -> None:
        """Trains the runs of all attempts, rung by rung, until each is finished, pruned, failed or lost."""
        going = [attempt for attempt in attempts if self._fits(attempt)]
        while going:
            # One that was given back may be some rungs ahead.
            rung = min(len(attempt.values) for attempt in going) + 1
            due = [attempt for attempt in going if len(attempt.values) < rung]
            try:
                worth = self._train(due, rung)
            except Stopped:
                for attempt in going:
                    self.trials.give_back(attempt)
                raise
            except (ValueError, RunError) as error:
                if isinstance(error.__cause__, OSError):
                    for attempt in going:
                        self.trials.give_back(attempt)
                    raise
                for attempt in due:
                    with contextlib.suppress(LostTrial):
                        self.trials.fail(attempt, str(error))
                staying = []
            else:
                staying = [
                    attempt for attempt, by_seed in zip(due, worth, strict=True) if self._goes_on(attempt, by_seed)
                ]
            going = [attempt for attempt in going if len(attempt.values) >= rung and attempt not in due] + staying
            self.on_change()

    def _fits(self, attempt: Attempt) -> bool:
        """Whether the settings can be those of a run; fails the attempt where they cannot."""
        study = self.trials.study
        try:
            study.budget.iterations(study.config(attempt.params), 1)
            return True
        except ValueError as error:
            self.trials.fail(attempt, str(error))
            return False

    def _train(self, attempts: list[Attempt], rung: int) -> list[list[float]]:
        """Trains the runs of all of them up to a rung; what each attempt is worth, by seed."""
        study, configs, folders = self.trials.study, [], []
        for attempt in attempts:
            config = study.config(attempt.params)
            iterations = study.budget.iterations(config, rung)
            for seed in range(study.seeds):
                configs.append(config.replace(seed=seed, iterations=iterations))
                folders.append(self.folder / f"trial_{attempt.number:05}" / f"seed_{seed}")
        results = train_population(study.game, configs, folders, resume=True)
        if results[0].stopped_by is not None:
            raise Stopped(results[0].stopped_by)
        self.check()
        worth = [self.measure(folder, config.seed) for folder, config in zip(folders, configs, strict=True)]
        return [worth[begin : begin + study.seeds] for begin in range(0, len(worth), study.seeds)]

    def _goes_on(self, attempt: Attempt, by_seed: list[float]) -> bool:
        """Reports what was found at a rung, and ends the attempt where it is pruned or done."""
        try:
            pruned = self.trials.report(attempt, by_seed)
            if pruned or len(attempt.values) == self.trials.study.budget.rungs:
                self.trials.finish(attempt, pruned=pruned)
                return False
            return True
        except LostTrial:
            return False


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
