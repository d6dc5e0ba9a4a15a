"""A sequential test between two strengths (Wald 1945), which stops a match early.

It is the generalized test of Van den Bergh, "The generalized sequential probability ratio test for expected score". It
makes no assumption on draws. Games come in pairs that share a start, and whose two results may depend on each other.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy
from jaxtyping import Float

from azjax.core.errors import InputError

Rewards: TypeAlias = Sequence[float] | Float[np.ndarray, "games"]
_UNSEEN = 1e-3  # count of a result that no pair had yet
_MOST_ELO = 2000.0  # beyond it the expected score is nearly 1, and games that decide between two such are too many


@dataclasses.dataclass(frozen=True)
class SequentialTest:
    """Tests whether the first player is stronger by `elo1` rather than by `elo0`.

    Attributes:
      elo0: the smaller difference; expected score 1 / (1 + 10^(-elo/400)).
      elo1: the larger difference.
      alpha: the probability, at most, that `elo1` is accepted where `elo0` is true.
      beta: the probability, at most, that `elo0` is accepted where `elo1` is true.
    """

    elo0: float = 0.0
    elo1: float = 50.0
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -_MOST_ELO <= self.elo0 < self.elo1 <= _MOST_ELO:
            raise InputError(
                f"elo0 must be less than elo1, and both within {-_MOST_ELO:g}..{_MOST_ELO:g}; "
                f"got {self.elo0} and {self.elo1}"
            )
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise InputError(f"{name} must be between 0 and 0.5, got {getattr(self, name)}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which `elo0` and `elo1` are accepted."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def log_likelihood_ratio(self, rewards: Rewards) -> float:
        """The log-likelihood ratio of `elo1` to `elo0`.

        Args:
          rewards: of the first player by game, an even number of them; games 2i and 2i + 1 are a pair. Above 0 is a
            win.

        Raises:
          InputError: an odd number of games.
        """
        if len(rewards) % 2:
            raise InputError(f"rewards must be of pairs of games, got {len(rewards)}")
        games = (np.sign(np.asarray(rewards, float)) + 1) / 2
        pairs = games.reshape(-1, 2).sum(axis=1)  # points of 2
        if not len(pairs):
            return 0.0
        scores = np.arange(5) / 4
        counts = np.bincount((2 * pairs).astype(int), minlength=5)
        counts = np.where(counts == 0, _UNSEEN, counts)
        shares = counts / counts.sum()
        likeliest = [_likeliest(scores, shares, 1 / (1 + 10 ** (-elo / 400))) for elo in (self.elo0, self.elo1)]
        return float(len(pairs) * np.sum(shares * np.log(likeliest[1] / likeliest[0])))

    def accepted(self, rewards: Rewards) -> float | None:
        """The accepted difference, `elo0` or `elo1`; None while undecided."""
        ratio, (low, high) = self.log_likelihood_ratio(rewards), self.bounds
        return self.elo0 if ratio <= low else self.elo1 if ratio >= high else None


def _likeliest(scores: Float[np.ndarray, "n"], shares: Float[np.ndarray, "n"], mean: float) -> Float[np.ndarray, "n"]:
    """The likeliest probabilities of `scores` with this mean, given their observed shares.

    They are shares / (1 + theta (scores - mean)); theta is the number that gives this mean (Van den Bergh, prop. 1.1).
    """
    distance = scores - mean
    low, high = -1 / np.max(distance), -1 / np.min(distance)
    margin = 1e-9 * (high - low)
    theta = scipy.optimize.brentq(
        lambda theta: np.sum(shares * distance / (1 + theta * distance)), low + margin, high - margin
    )
    likeliest: np.ndarray = shares / (1 + theta * distance)
    return likeliest
