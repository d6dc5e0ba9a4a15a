"""The trials of a study in its storage: which worker tries which point, and what happens when a worker dies.

A worker that is killed leaves a running attempt behind. Another worker ends it as failed and adds a second attempt.
Every decision is one operation of the storage, to begin a waiting attempt or to end a running one, which succeeds for
one worker only.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from azjax.core.errors import InputError
from azjax.runs.run_folder import with_defaults
from azjax.sweep.points import Attribute, Point, kills, needs_retry, point_number
from azjax.sweep.samplers import distribution_of, is_halved, pruner_of, sampler_of
from azjax.sweep.study import Study, shared_settings

LEASE_SECONDS = 60.0
_RENEWALS = 6  # during a lease


class LeaseExpired(Exception):
    """The lease of an attempt has expired: another worker has the point, or has finished it."""


@dataclasses.dataclass(eq=False)
class Attempt:
    """An attempt of this worker at a point.

    Attributes:
      number: the number of the point.
      params: values of the settings that are searched.
      values: the objective so far, by rung, by seed; an earlier attempt may have measured some.
      trial: Optuna's trial.
    """

    number: int
    params: dict[str, Any]
    values: list[list[float]]
    trial: optuna.Trial

    @property
    def is_retry(self) -> bool:
        """Whether there was an earlier attempt at the point, which may have left runs."""
        return self.trial.number != self.number


class Trials:
    """The trials of a study, as one worker uses them.

    Args:
      study: the study; it is added to the storage if it is not there.
      storage: of `connect`.
      lease: seconds after which a worker without a sign of life counts as dead; the same for all workers.
      must_exist: whether a study that the storage does not have is an error.
      folder: of the runs, which a new study must not share with an earlier one; not checked if None.

    Raises:
      InputError: the storage has another study of the same name, or none where there must be one; or the study is new
        and the folder has runs.
    """

    def __init__(
        self,
        study: Study,
        storage: optuna.storages.BaseStorage,
        *,
        lease: float = LEASE_SECONDS,
        must_exist: bool = False,
        folder: Path | None = None,
    ):
        self.study = study
        self._storage = storage
        self._lease = lease
        # By attempt, the counter of its lease and when this worker first saw it.
        self._leases: dict[int, tuple[int, float]] = {}
        self._distributions = {name: distribution_of(values) for name, values in study.search.items()}
        sampler, pruner = sampler_of(study), pruner_of(study)
        try:
            # Loading comes first, since it does not write to the storage.
            self.optuna_study = optuna.load_study(
                study_name=study.name, storage=storage, sampler=sampler, pruner=pruner
            )
        except KeyError:
            if must_exist:
                raise InputError(f"there is no sweep {study.name} there yet") from None
            if folder is not None and any(folder.glob("trial_*")):
                raise InputError(
                    f"{folder} has the runs of another study, which the storage does not know: remove them, or name "
                    "another --folder"
                ) from None
            self.optuna_study = optuna.create_study(
                study_name=study.name,
                storage=storage,
                sampler=sampler,
                pruner=pruner,
                direction=study.objective.direction,
                load_if_exists=True,
            )
        self._check_same()

    def points(self) -> list[Point]:
        """All points so far, in order."""
        return [Point.of(attempt) for attempt in self._latest()]

    def is_over(self) -> bool:
        """Whether nothing is left to do for any worker."""
        points = self.points()
        return len(points) >= self.study.trials and all(point.is_over for point in points)

    def claim(self) -> Attempt | None:
        """Takes a point for this worker alone: one that waits for another attempt, else a new one.

        Returns:
          the attempt; None if there is no point now. Until `is_over` one may be released later.
        """
        for attempt in self._latest():
            if attempt.state == TrialState.RUNNING and self._has_expired(attempt):
                with contextlib.suppress(LeaseExpired):
                    self._end(attempt._trial_id, TrialState.FAIL)
        latest = self._latest()
        for attempt in filter(needs_retry, latest):
            self._add_retry(attempt)
        waiting = any(needs_retry(attempt) or attempt.state == TrialState.WAITING for attempt in latest)
        if not waiting and len(latest) >= self.study.trials:
            return None
        trial = self.optuna_study.ask(self._distributions)
        try:
            return self._begin(trial)
        except BaseException:
            # Else the others would wait until its lease has expired.
            with contextlib.suppress(Exception):
                self._end(trial._trial_id, TrialState.FAIL, {Attribute.STOPPED: True})
            raise

    def _begin(self, trial: optuna.Trial) -> Attempt | None:
        """The attempt of a trial that was just claimed; None, and it is over, if others claimed the same."""
        if self._is_surplus(trial.number):
            trial.set_user_attr(Attribute.SURPLUS, True)
            self._end(trial._trial_id, TrialState.FAIL)
            return None
        values = trial.user_attrs.get(Attribute.VALUES, [])
        for rung, by_seed in enumerate(values, 1):
            trial.report(float(np.mean(by_seed)), rung)
        return Attempt(trial.user_attrs.get(Attribute.POINT, trial.number), trial.params, values, trial)

    @contextlib.contextmanager
    def keep_lease(self, attempt: Attempt) -> Iterator[None]:
        """Renews the lease of an attempt from a thread, until the block or the process ends."""
        over = threading.Event()

        def renew() -> None:
            counter = 0
            while not over.wait(self._lease / _RENEWALS):
                counter += 1
                try:
                    self._storage.set_trial_user_attr(attempt.trial._trial_id, Attribute.LEASE, counter)
                except UpdateFinishedTrialError:
                    return  # the worker gets LeaseExpired when it reports
                except Exception:
                    continue  # the storage may be reachable again next time

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def report(self, attempt: Attempt, by_seed: list[float]) -> bool:
        """Saves the objective after one more rung.

        Args:
          attempt: the attempt.
          by_seed: the objective of each seed.

        Returns:
          whether to prune it here, by the values of other points at the same rung.

        Raises:
          LeaseExpired: another worker has it.
        """
        attempt.values.append(by_seed)
        rung = len(attempt.values)
        try:
            attempt.trial.set_user_attr(Attribute.VALUES, attempt.values)
            attempt.trial.report(float(np.mean(by_seed)), rung)
            return rung < self.study.budget.rungs and (
                bool(attempt.trial.should_prune()) or self._is_halved(attempt, rung)
            )
        except UpdateFinishedTrialError as error:
            raise LeaseExpired from error

    def _is_halved(self, attempt: Attempt, rung: int) -> bool:
        """Whether successive halving prunes an attempt: after the rungs 1, 2, 4, ... the better half continues."""
        if self.study.pruner != "successive_halving" or rung & (rung - 1):
            return False
        others = (point for point in self.points() if len(point.values) >= rung and point.number != attempt.number)
        means = [float(np.mean(values[rung - 1])) for values in (attempt.values, *(point.values for point in others))]
        return is_halved(self.study, means[0], means[1:])

    def finish(self, attempt: Attempt, *, pruned: bool = False) -> None:
        """Ends an attempt; its value is the mean over seeds at the last rung.

        Raises:
          LeaseExpired: another worker has it.
        """
        state = TrialState.PRUNED if pruned else TrialState.COMPLETE
        self._end(attempt.trial._trial_id, state, value=float(np.mean(attempt.values[-1])))

    def fail(self, attempt: Attempt, reason: str) -> None:
        """Ends an attempt whose settings cannot be trained; the point is not tried again.

        Raises:
          LeaseExpired: another worker has it.
        """
        self._end(attempt.trial._trial_id, TrialState.FAIL, {Attribute.REASON: reason})

    def release(self, attempt: Attempt) -> None:
        """Ends an attempt whose worker stops; another attempt may continue it. Attempts that are over stay so."""
        with contextlib.suppress(LeaseExpired):
            self._end(attempt.trial._trial_id, TrialState.FAIL, {Attribute.STOPPED: True})

    def _latest(self) -> list[FrozenTrial]:
        """The latest attempt at each point."""
        latest = {point_number(attempt): attempt for attempt in self._attempts()}
        return [latest[number] for number in sorted(latest)]

    def _attempts(self) -> list[FrozenTrial]:
        """All attempts that count, in order."""
        attempts = self.optuna_study.get_trials(deepcopy=False)
        return [attempt for attempt in attempts if Attribute.SURPLUS not in attempt.user_attrs]

    def _end(
        self, trial_id: int, state: TrialState, attributes: dict[str, Any] | None = None, *, value: float | None = None
    ) -> None:
        """Ends an attempt, unless another worker has done so."""
        try:
            for name, attribute in (attributes or {}).items():
                self._storage.set_trial_user_attr(trial_id, name, attribute)
            self._storage.set_trial_state_values(trial_id, state, None if value is None else [value])
        except UpdateFinishedTrialError as error:
            raise LeaseExpired from error

    def _has_expired(self, attempt: FrozenTrial) -> bool:
        """Whether the lease was not renewed for long enough, by the clock of this worker alone."""
        counter, now = attempt.user_attrs.get(Attribute.LEASE, 0), time.monotonic()
        known, since = self._leases.get(attempt.number, (None, now))
        if known != counter:
            self._leases[attempt.number] = (counter, now)
        return known == counter and now - since > self._lease

    def _add_retry(self, attempt: FrozenTrial) -> None:
        attributes = attempt.user_attrs | {
            Attribute.POINT: point_number(attempt),
            Attribute.RETRY_OF: attempt.number,
            Attribute.KILLED: kills(attempt),
            Attribute.LEASE: 0,
        }
        attributes.pop(Attribute.STOPPED, None)
        self.optuna_study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                params=attempt.params,
                distributions=attempt.distributions,
                user_attrs=attributes,
            )
        )

    def _is_surplus(self, number: int) -> bool:
        """Whether workers that claimed at the same time began one point too many, or retried a point twice."""
        attempts = self._attempts()
        (own,) = (attempt for attempt in attempts if attempt.number == number)
        before = [attempt for attempt in attempts if attempt.number < number]
        if Attribute.RETRY_OF in own.user_attrs:
            return own.user_attrs[Attribute.RETRY_OF] in [
                attempt.user_attrs.get(Attribute.RETRY_OF) for attempt in before
            ]
        return sum(Attribute.POINT not in attempt.user_attrs for attempt in before) >= self.study.trials

    def _has_direction(self) -> bool:
        """Whether the study in the storage is to be maximized, or minimized, as this one is."""
        return self.optuna_study.direction.name.lower() == self.study.objective.direction

    def _check_same(self) -> None:
        """Checks that the study in the storage is this one, or was never begun."""
        current = self.study.describe()
        saved = self.optuna_study.user_attrs.get("study")
        if saved is None:
            self.optuna_study.set_user_attr("study", current)
            return
        saved |= {"base": shared_settings(with_defaults(saved["base"]), saved["search"])}
        changes = [f"{name} = {was}, requested {now}" for name, was, now in _leaves(saved, current) if was != now]
        if changes and not self._attempts() and self._has_direction():
            self.optuna_study.set_user_attr("study", current)  # nothing was tried as it was before
        elif changes:
            raise InputError(
                f"the storage has a study {self.study.name} with {'; '.join(changes)}; only trials and [slurm] may "
                "change: give the file another name, or name another --folder"
            )


def _leaves(saved: Any, current: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every leaf of two JSON values: its path, and its value in both."""
    if isinstance(saved, dict) and isinstance(current, dict):
        for key in {**saved, **current}:
            yield from _leaves(saved.get(key), current.get(key), f"{name}.{key}".strip("."))
    else:
        yield name, saved, current
