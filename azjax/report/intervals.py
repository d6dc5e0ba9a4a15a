"""Comparing runs: means over seeds, never a lone best."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean over seeds, and Student's 95% interval of it; of one seed the ends are NaN."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Interval":
        """Of independent measurements, one or more."""
        mean, count = float(np.mean(values)), len(values)
        if count < 2:
            return cls(mean, math.nan, math.nan)
        half = float(stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
        return cls(mean, mean - half, mean + half)

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{number(self.mean)} (one seed)"
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


def number(value: Any) -> str:
    """Four digits of a number; anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
