"""Intervals as texts and as lines of figures: of means over seeds, and of ratings."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy

NO_BOUNDS = (-math.inf, math.inf)
_BEYOND = 200.0  # Elo that a line without an end goes on beyond all ratings


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean and its 95% interval by Student's t distribution; the ends are NaN for a single value.

    Of a quantity with bounds the interval ends there, since its mean cannot lie beyond them.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float | int], bounds: tuple[float, float] = NO_BOUNDS) -> "Interval":
        """The interval of the mean of independent values, at least one, all within `bounds`."""
        mean, count = float(np.mean(values)), len(values)
        if count < 2:
            return cls(mean, math.nan, math.nan)
        half = float(scipy.stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
        return cls(mean, max(mean - half, bounds[0]), min(mean + half, bounds[1]))

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{number(self.mean)} (one seed)"
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


def number(value: object) -> str:
    """A float with four digits, or more before the point; anything else as it is."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def elo_interval(low: float, high: float) -> str:
    """The interval of a rating, such as `-40 to +120`; an end may be infinite."""
    if math.isinf(low):
        return "any" if math.isinf(high) else f"at most {high:+z,.0f}"
    return f"at least {low:+z,.0f}" if math.isinf(high) else f"{low:+z,.0f} to {high:+z,.0f}"


def elo_errors(elo: Sequence[float], intervals: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Lengths of the lines to the left and to the right of each rating; without an end they go beyond all ratings."""
    ends = [end for end in (*elo, *(end for interval in intervals for end in interval)) if math.isfinite(end)]
    least, most = min(ends) - _BEYOND, max(ends) + _BEYOND
    pairs = list(zip(elo, intervals, strict=True))
    return [max(at - max(low, least), 0) for at, (low, _) in pairs], [
        max(min(high, most) - at, 0) for at, (_, high) in pairs
    ]
