"""Comparing runs: means over seeds, never a lone best."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats


def mean_interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half of its 95% interval by Student's t (None of a single value)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, float(stats.t.ppf(0.975, len(values) - 1)) * spread
