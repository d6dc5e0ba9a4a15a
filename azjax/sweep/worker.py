"""A worker of a sweep: it claims a point, trains its runs rung by rung, measures them and tells."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from azjax.sweep.objective import Measure
from azjax.sweep.study import Study
from azjax.sweep.trials import Attempt, LostTrial, Trials
from azjax.training import RunError, train

_POLL_SECONDS = 1.0


class Stopped(BaseException):
    """Ctrl-C or SIGTERM ended the work; what was trained is saved, and its trial is given back.

    Attributes:
      signal: which one.
    """

    def __init__(self, number: signal.Signals):
        super().__init__(number.name)
        self.signal = number


def work(trials: Trials, folder: Path, on_change: Callable[[], None] = lambda: None) -> None:
    """Tries points until the study is over, also those that other workers leave behind.

    Args:
      trials: of the study.
      folder: of the study; the runs of point 12 go to `trial_00012/seed_0`, ...
      on_change: called when a trial has begun, come to its next rung or ended.

    Raises:
      Stopped: by a signal, which is served after the iteration under way.
      ValueError: the objective cannot be measured.
      RunError: what is no fault of a point's settings, as a full disk.
    """
    with stop_signals() as check:
        if trials.is_over():
            return
        measure = trials.study.objective.prepare(trials.study.game)
        while not trials.is_over():
            attempt = trials.claim()
            on_change()
            if attempt is None:
                time.sleep(_POLL_SECONDS)
            else:
                with trials.held(attempt), contextlib.suppress(LostTrial):
                    _try(trials, attempt, measure, folder / f"trial_{attempt.number:05}", check, on_change)
                on_change()


def run_trial(
    study: Study,
    params: dict[str, Any],
    folder: Path,
    measure: Measure,
    *,
    rungs_done: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Iterator[list[float]]:
    """Trains the runs of one point, and goes on with those that are there.

    Args:
      study: what is searched.
      params: values of the settings that are searched.
      folder: of the point; its runs are `seed_0`, ...
      measure: of the study's objective.
      rungs_done: that need not be measured again.
      check: called between runs, may raise.

    Yields:
      After each further rung, what the run of each seed is worth.

    Raises:
      ValueError: the settings do not fit.
      RunError: of `train`.
      Stopped: a signal came.
    """
    config = study.config(params)
    for rung in range(rungs_done + 1, study.budget.rungs + 1):
        iterations = study.budget.iterations(config, rung)
        values = []
        for seed in range(study.seeds):
            run = folder / f"seed_{seed}"
            result = train(study.game, config.replace(seed=seed, iterations=iterations), run, resume=True)
            if result.stopped_by is not None:
                raise Stopped(result.stopped_by)
            check()
            values.append(measure(run, seed))
        yield values


def _try(
    trials: Trials,
    attempt: Attempt,
    measure: Measure,
    folder: Path,
    check: Callable[[], None],
    on_change: Callable[[], None],
) -> None:
    study, rungs_done = trials.study, len(attempt.values)
    try:
        for by_seed in run_trial(study, attempt.params, folder, measure, rungs_done=rungs_done, check=check):
            if trials.report(attempt, by_seed):
                trials.finish(attempt, pruned=True)
                return
            on_change()
        trials.finish(attempt)
    except Stopped:
        trials.give_back(attempt)
        raise
    except (ValueError, RunError) as error:
        if isinstance(error.__cause__, OSError):
            trials.give_back(attempt)
            raise
        trials.fail(attempt, str(error))


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
