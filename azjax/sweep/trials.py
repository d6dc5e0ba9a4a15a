"""The trials of a study in its storage: who may try which point, what came of it, and what happens to those left alone.

A trial of ours is a point of the search space. In the storage it has one trial of Optuna's for each attempt: a worker
that is killed leaves one behind, which any other worker ends as failed, and adds the second. All that decides is
one operation of the storage each: to begin a waiting attempt, and to end a running one; only one worker can do either.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from azjax.core.errors import InputError
from azjax.runs.run_folder import with_defaults
from azjax.sweep.study import Choices, Range, Study, shared_settings

LEASE_SECONDS = 60.0
_RENEWALS = 6  # of a lease, before it runs out
_ATTEMPTS = 2  # that may be killed

# Attributes of an attempt.
_POINT = "point"  # number of the point's first attempt; absent in that one itself
_RETRY_OF = "retry_of"  # number of the attempt before
_KILLED = "killed"  # how many attempts before it were killed
_LEASE = "lease"  # a number that the worker raises while it lives
_VALUES = "values"  # by rung, by seed
_REASON = "reason"  # why the settings failed, which no other attempt would change
_STOPPED = "stopped"  # its worker was asked to stop
_SURPLUS = "surplus"  # one too many, begun at the same time as another; it does not count


class LostTrial(Exception):
    """The lease ran out: another worker has the trial, or has finished it."""


@dataclasses.dataclass(frozen=True)
class Point:
    """A trial as it stands.

    Attributes:
      number: names its folder.
      params: values of the settings that are searched.
      state: `waiting`, `running`, `complete`, `pruned` or `failed`.
      values: of the objective, by rung, by seed.
      reason: why it failed; empty if it did not.
    """

    number: int
    params: dict[str, Any]
    state: str
    values: list[list[float]]
    reason: str

    @property
    def is_over(self) -> bool:
        """Whether no worker will try it again."""
        return self.state in ("complete", "pruned", "failed")


@dataclasses.dataclass(eq=False)
class Attempt:
    """A point that this worker tries.

    Attributes:
      number: of the point.
      params: values of the settings that are searched.
      values: of the objective so far, by rung, by seed; an attempt before may have left some.
      trial: Optuna's.
    """

    number: int
    params: dict[str, Any]
    values: list[list[float]]
    trial: optuna.Trial

    @property
    def is_retry(self) -> bool:
        """Whether another attempt at the point was there before, and may have left runs."""
        return self.trial.number != self.number


class Trials:
    """The trials of a study, as one worker sees them.

    Args:
      study: what is searched; the storage gets it if it has no study of the name.
      storage: of `connect`.
      lease: seconds after which a worker that gave no sign counts as dead; the same for all workers.

    Raises:
      ValueError: the storage has a study of that name which is another one.
    """

    def __init__(self, study: Study, storage: optuna.storages.BaseStorage, *, lease: float = LEASE_SECONDS):
        self.study = study
        self._storage = storage
        self._lease = lease
        self._seen: dict[int, tuple[int, float]] = {}
        self._distributions = {name: _distribution(values) for name, values in study.search.items()}
        how: dict[str, Any] = {
            "storage": storage,
            "study_name": study.name,
            "sampler": _sampler(study),
            "pruner": _pruner(study),
        }
        try:
            self.optuna_study = optuna.load_study(**how)  # a journal that is looked at stays as it is
        except KeyError:
            self.optuna_study = optuna.create_study(**how, direction=study.objective.direction, load_if_exists=True)
        self._check_same()

    def points(self) -> list[Point]:
        """All trials so far, in order."""
        return [_point(attempt) for attempt in self._latest()]

    def is_over(self) -> bool:
        """Whether there is nothing left to do for any worker."""
        points = self.points()
        return len(points) >= self.study.trials and all(point.is_over for point in points)

    def claim(self) -> Attempt | None:
        """A point for this worker alone; first one that was given back, else a new one.

        Returns:
          None if there is none now; others may be given back later, see `is_over`.
        """
        for attempt in self._latest():
            if attempt.state == TrialState.RUNNING and self._has_run_out(attempt):
                with contextlib.suppress(LostTrial):
                    self._end(attempt._trial_id, TrialState.FAIL)
        latest = self._latest()
        for attempt in filter(_is_due, latest):
            self._add_retry(attempt)
        waiting = any(_is_due(attempt) or attempt.state == TrialState.WAITING for attempt in latest)
        if not waiting and len(latest) >= self.study.trials:
            return None
        trial = self.optuna_study.ask(self._distributions)
        if self._is_surplus(trial.number):
            trial.set_user_attr(_SURPLUS, True)
            self._end(trial._trial_id, TrialState.FAIL)
            return None
        values = trial.user_attrs.get(_VALUES, [])
        for rung, by_seed in enumerate(values, 1):
            trial.report(float(np.mean(by_seed)), rung)
        return Attempt(trial.user_attrs.get(_POINT, trial.number), trial.params, values, trial)

    @contextlib.contextmanager
    def held(self, attempt: Attempt) -> Iterator[None]:
        """Renews the lease of an attempt from a thread, until the block ends or its process does."""
        over = threading.Event()

        def renew() -> None:
            number = 0
            while not over.wait(self._lease / _RENEWALS):
                number += 1
                try:
                    self._storage.set_trial_user_attr(attempt.trial._trial_id, _LEASE, number)
                except UpdateFinishedTrialError:
                    return  # lost, as the worker learns when it reports
                except Exception:
                    continue  # a storage that cannot be reached now may be, the next time

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def report(self, attempt: Attempt, by_seed: list[float]) -> bool:
        """Keeps what the objective is after one more rung.

        Args:
          attempt: whose.
          by_seed: of the objective.

        Returns:
          whether to prune it here, by what all others were worth at the same rung.

        Raises:
          LostTrial: another worker has it.
        """
        attempt.values.append(by_seed)
        rung = len(attempt.values)
        try:
            attempt.trial.set_user_attr(_VALUES, attempt.values)
            attempt.trial.report(float(np.mean(by_seed)), rung)
            return rung < self.study.budget.rungs and attempt.trial.should_prune()
        except UpdateFinishedTrialError as error:
            raise LostTrial from error

    def finish(self, attempt: Attempt, *, pruned: bool = False) -> None:
        """Ends an attempt; its value is the mean over seeds of the last rung.

        Raises:
          LostTrial: another worker has it.
        """
        state = TrialState.PRUNED if pruned else TrialState.COMPLETE
        self._end(attempt.trial._trial_id, state, float(np.mean(attempt.values[-1])))

    def fail(self, attempt: Attempt, reason: str) -> None:
        """Ends an attempt whose settings cannot be trained with; nobody tries them again.

        Raises:
          LostTrial: another worker has it.
        """
        self._end(attempt.trial._trial_id, TrialState.FAIL, attributes={_REASON: reason})

    def give_back(self, attempt: Attempt) -> None:
        """Ends an attempt whose worker stops; another one goes on with it."""
        with contextlib.suppress(LostTrial):
            self._end(attempt.trial._trial_id, TrialState.FAIL, attributes={_STOPPED: True})

    def _latest(self) -> list[FrozenTrial]:
        """The last attempt of each point."""
        found: dict[int, FrozenTrial] = {}
        for attempt in self.optuna_study.get_trials(deepcopy=False):
            if _SURPLUS not in attempt.user_attrs:
                found[attempt.user_attrs.get(_POINT, attempt.number)] = attempt
        return [found[number] for number in sorted(found)]

    def _end(
        self, trial_id: int, state: TrialState, value: float | None = None, attributes: dict[str, Any] | None = None
    ) -> None:
        """Only the first of all who end an attempt does so."""
        try:
            for name, attribute in (attributes or {}).items():
                self._storage.set_trial_user_attr(trial_id, name, attribute)
            self._storage.set_trial_state_values(trial_id, state, None if value is None else [value])
        except UpdateFinishedTrialError as error:
            raise LostTrial from error

    def _has_run_out(self, attempt: FrozenTrial) -> bool:
        """Whether this worker has seen the lease unchanged for long enough; clocks of others are not believed."""
        lease = attempt.user_attrs.get(_LEASE, 0)
        now = time.monotonic()
        seen, since = self._seen.get(attempt.number, (None, now))
        if seen != lease:
            self._seen[attempt.number] = (lease, now)
        return seen == lease and now - since > self._lease

    def _add_retry(self, attempt: FrozenTrial) -> None:
        attributes = attempt.user_attrs | {
            _POINT: attempt.user_attrs.get(_POINT, attempt.number),
            _RETRY_OF: attempt.number,
            _KILLED: _times_killed(attempt),
            _LEASE: 0,
        }
        attributes.pop(_STOPPED, None)
        self.optuna_study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                params=attempt.params,
                distributions=attempt.distributions,
                user_attrs=attributes,
            )
        )

    def _is_surplus(self, number: int) -> bool:
        """Whether workers who looked at the same time began one point too many, or tried one again twice."""
        attempts = [t for t in self.optuna_study.get_trials(deepcopy=False) if _SURPLUS not in t.user_attrs]
        (own,) = (attempt for attempt in attempts if attempt.number == number)
        before = [attempt for attempt in attempts if attempt.number < number]
        if _RETRY_OF in own.user_attrs:
            return own.user_attrs[_RETRY_OF] in [attempt.user_attrs.get(_RETRY_OF) for attempt in before]
        return sum(_POINT not in attempt.user_attrs for attempt in before) >= self.study.trials

    def _check_same(self) -> None:
        """Holds that the study in the storage is the one that was asked for."""
        asked = self.study.describe()
        saved = self.optuna_study.user_attrs.get("study")
        if saved is None:
            self.optuna_study.set_user_attr("study", asked)
            return
        saved |= {"base": shared_settings(with_defaults(saved["base"]), saved["search"])}
        changes = [
            f"{name} = {was}, asked for {now}" for name, was, now in _differences(saved, asked, "") if was != now
        ]
        if changes:
            raise InputError(
                f"the storage has a study {self.study.name} with {'; '.join(changes)}; only trials may change: give "
                "the file another name, or name another --folder"
            )


class _Grid(optuna.samplers.BaseSampler):
    """The points of a grid in turn, also where attempts are repeated, which takes numbers of Optuna's."""

    def __init__(self, search: dict[str, Range | Choices]):
        self._choices = {name: values.choices for name, values in search.items() if isinstance(values, Choices)}

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> dict[str, Any]:
        return {}

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: dict[str, Any]) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: FrozenTrial, param_name: str, param_distribution: Any) -> Any:
        place = sum(
            attempt.number < trial.number and not {_POINT, _SURPLUS} & attempt.user_attrs.keys()
            for attempt in study.get_trials(deepcopy=False)
        )
        sizes = [len(choices) for choices in self._choices.values()]
        indices = np.unravel_index(place % int(np.prod(sizes)), sizes)
        return self._choices[param_name][int(dict(zip(self._choices, indices, strict=True))[param_name])]


def _sampler(study: Study) -> optuna.samplers.BaseSampler:
    if study.sampler == "grid":
        return _Grid(study.search)
    # Without a seed: with the same one all workers would begin with the same points.
    return optuna.samplers.TPESampler() if study.sampler == "tpe" else optuna.samplers.RandomSampler()


def _pruner(study: Study) -> optuna.pruners.BasePruner:
    if study.pruner == "median":
        return optuna.pruners.MedianPruner()
    if study.pruner == "successive_halving":
        # The better half goes on after the rungs 1, 2, 4, ...
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    return optuna.pruners.NopPruner()


def _distribution(values: Range | Choices) -> optuna.distributions.BaseDistribution:
    if isinstance(values, Choices):
        return optuna.distributions.CategoricalDistribution(values.choices)
    if isinstance(values.low, int) and isinstance(values.high, int):
        return optuna.distributions.IntDistribution(values.low, values.high, log=values.log)
    return optuna.distributions.FloatDistribution(values.low, values.high, log=values.log)


def _times_killed(attempt: FrozenTrial) -> int:
    """Attempts at its point that were killed, this one too."""
    return attempt.user_attrs.get(_KILLED, 0) + (_STOPPED not in attempt.user_attrs)


def _is_due(attempt: FrozenTrial) -> bool:
    """Whether the last attempt at a point failed through no fault of its settings, and not too often."""
    over = attempt.state == TrialState.FAIL and _REASON not in attempt.user_attrs
    return over and _times_killed(attempt) < _ATTEMPTS


_STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.RUNNING: "running"}


def _point(attempt: FrozenTrial) -> Point:
    """How a point stands, of its last attempt."""
    state, reason = _STATES.get(attempt.state, "waiting"), ""
    if attempt.state == TrialState.FAIL and not _is_due(attempt):
        state = "failed"
        reason = attempt.user_attrs.get(_REASON, f"its worker was killed {_ATTEMPTS} times")
    attributes = attempt.user_attrs
    number = attributes.get(_POINT, attempt.number)
    return Point(number, attempt.params, state, attributes.get(_VALUES, []), reason)


def _differences(saved: Any, asked: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Every leaf of two JSON values, by its path, as it was and as it is asked for."""
    if isinstance(saved, dict) and isinstance(asked, dict):
        for key in {**saved, **asked}:
            yield from _differences(saved.get(key), asked.get(key), f"{name}.{key}".strip("."))
    else:
        yield name, saved, asked
