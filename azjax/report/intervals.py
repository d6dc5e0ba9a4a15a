"""Means over seeds with their intervals, for comparing runs."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy

NO_BOUNDS = (-math.inf, math.inf)


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
