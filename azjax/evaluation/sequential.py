"""When a match may stop: a sequential test between two strengths (Wald 1945).

The test is the generalised one of Van den Bergh, "The generalized sequential probability ratio test for expected
score": nothing is assumed of draws, and games come in pairs that share a start, whose results need not be independent.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from azjax.core.errors import InputError

_UNSEEN = 1e-3  # pairs, for a result that no pair had yet


@dataclasses.dataclass(frozen=True)
class SequentialTest:
    """Is the first player stronger by `elo1` rather than by `elo0`? It is stopped as soon as that is sure enough.

    Attributes:
      elo0: the smaller difference; expected score 1 / (1 + 10^(-elo/400)).
      elo1: the larger one.
      alpha: how often, at most, `elo1` may be accepted where `elo0` is true.
      beta: how often, at most, `elo0` may be accepted where `elo1` is true.
    """

    elo0: float = 0.0
    elo1: float = 50.0
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not (math.isfinite(self.elo0) and math.isfinite(self.elo1) and self.elo0 < self.elo1):
            raise InputError(f"elo0 must be less than elo1, and both finite; got {self.elo0} and {self.elo1}")
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise InputError(f"{name} must be between 0 and 0.5, got {getattr(self, name)}")

    @property
    def bounds(self) -> tuple[float, float]:
        """At the first of these log-likelihood ratios `elo0` is accepted, at the second one `elo1`."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def log_likelihood_ratio(self, rewards: Sequence[float]) -> float:
        """Of `elo1` to `elo0`.

        Args:
          rewards: of the first player, games 2i and 2i + 1 a pair; above 0 is a win. An even number of them.
        """
        games = (np.sign(np.asarray(rewards, float)) + 1) / 2
        pairs = games.reshape(-1, 2).sum(axis=1)  # points of 2
        if not len(pairs):
            return 0.0
        scores = np.arange(5) / 4
        seen = np.bincount((2 * pairs).astype(int), minlength=5)
        shares = np.where(seen == 0, _UNSEEN, seen) / np.where(seen == 0, _UNSEEN, seen).sum()
        likeliest = [_likeliest(scores, shares, 1 / (1 + 10 ** (-elo / 400))) for elo in (self.elo0, self.elo1)]
        return float(len(pairs) * np.sum(shares * np.log(likeliest[1] / likeliest[0])))

    def accepted(self, rewards: Sequence[float]) -> float | None:
        """The difference that is accepted, `elo0` or `elo1`; None while neither is."""
        ratio, (low, high) = self.log_likelihood_ratio(rewards), self.bounds
        return self.elo0 if ratio <= low else self.elo1 if ratio >= high else None


def _likeliest(scores: np.ndarray, shares: np.ndarray, mean: float) -> np.ndarray:
    """The likeliest probabilities of `scores` with this mean, where they were seen with these shares.

    They are shares / (1 + theta (scores - mean)), with the theta that makes the mean right (Van den Bergh, prop. 1.1).
    """
    away = scores - mean
    low, high = -1 / away.max(), -1 / away.min()
    room = 1e-9 * (high - low)
    theta = optimize.brentq(lambda theta: np.sum(shares * away / (1 + theta * away)), low + room, high - room)
    return shares / (1 + theta * away)
