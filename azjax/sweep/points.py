"""The points of a study, as the attempts in its storage describe them.

A point of the search space has one trial of Optuna's for each attempt. The first attempt gives the point its number;
later ones name it in their attributes.
"""

import dataclasses
from typing import Any, Literal

from optuna.trial import FrozenTrial, TrialState

State = Literal["waiting", "running", "complete", "pruned", "failed"]

MAX_KILLS = 2  # a point whose workers were killed this many times fails


class Attribute:
    """Names of the attributes of an attempt."""

    POINT = "point"  # number of the point's first attempt; absent in that one
    RETRY_OF = "retry_of"  # number of the attempt before
    KILLED = "killed"  # how many earlier attempts were killed
    LEASE = "lease"  # a counter that the worker increases while it lives
    VALUES = "values"  # by rung, by seed
    REASON = "reason"  # why the settings failed; another attempt would fail too
    STOPPED = "stopped"  # the worker was asked to stop
    SURPLUS = "surplus"  # begun at the same time as another attempt, and not needed; it does not count


_STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
}


@dataclasses.dataclass(frozen=True)
class Point:
    """The current result of a point.

    Attributes:
      number: the number of the point, which names its folder.
      params: values of the settings that are searched.
      state: its state.
      values: the objective, by rung, by seed.
      reason: why it failed; empty if it did not.
    """

    number: int
    params: dict[str, Any]
    state: State
    values: list[list[float]]
    reason: str

    @property
    def is_over(self) -> bool:
        """Whether no worker will try it again."""
        return self.state in ("complete", "pruned", "failed")

    @classmethod
    def of(cls, attempt: FrozenTrial) -> "Point":
        """The point whose latest attempt this is."""
        attributes = attempt.user_attrs
        state, reason = _STATES.get(attempt.state, "waiting"), ""
        if attempt.state == TrialState.FAIL and not needs_retry(attempt):
            state, reason = "failed", attributes.get(Attribute.REASON, f"its worker was killed {MAX_KILLS} times")
        return cls(point_number(attempt), attempt.params, state, attributes.get(Attribute.VALUES, []), reason)


def point_number(attempt: FrozenTrial) -> int:
    """The number of the point that was tried."""
    number: int = attempt.user_attrs.get(Attribute.POINT, attempt.number)
    return number


def kills(attempt: FrozenTrial) -> int:
    """How many attempts at the point were killed, if this one has failed without a reason."""
    earlier: int = attempt.user_attrs.get(Attribute.KILLED, 0)
    return earlier + (Attribute.STOPPED not in attempt.user_attrs)


def needs_retry(attempt: FrozenTrial) -> bool:
    """Whether the point needs another attempt: this one failed, not by its settings, and not too often."""
    failed = attempt.state == TrialState.FAIL and Attribute.REASON not in attempt.user_attrs
    return failed and kills(attempt) < MAX_KILLS
