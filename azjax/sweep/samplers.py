"""Optuna's samplers and pruners, as a study names them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from azjax.sweep.points import Attribute, point_number
from azjax.sweep.study import Choices, Range, Study


def sampler_of(study: Study) -> optuna.samplers.BaseSampler:
    """The sampler that `Study.sampler` names."""
    if study.sampler == "grid":
        return _Grid(study.search)
    # No seed: with equal seeds all workers would begin with the same points.
    return optuna.samplers.TPESampler() if study.sampler == "tpe" else optuna.samplers.RandomSampler()


def pruner_of(study: Study) -> optuna.pruners.BasePruner:
    """The pruner that `Study.pruner` names."""
    if study.pruner == "median":
        return optuna.pruners.MedianPruner()
    # Optuna's successive halving counts a point once for each attempt at it: see `is_halved`.
    return optuna.pruners.NopPruner()


def is_halved(study: Study, own: float, others: Sequence[float]) -> bool:
    """Whether successive halving prunes a point at a rung where the better half continues.

    Source: Li et al. 2018, "A System for Massively Parallel Hyperparameter Tuning", algorithm 2, with a rate of 2.

    Args:
      study: the study.
      own: the objective of the point at the rung.
      others: of the other points that have reached it.
    """
    sign = 1 if study.objective.direction == "minimize" else -1
    best = sorted(sign * value for value in (own, *others))
    return not sign * own <= best[max(len(best) // 2, 1) - 1]  # not a number: pruned


def distribution_of(values: Range | Choices) -> BaseDistribution:
    """Optuna's distribution of the values of a setting."""
    if isinstance(values, Choices):
        return CategoricalDistribution(values.choices)
    if isinstance(values.low, int) and isinstance(values.high, int):
        return IntDistribution(values.low, values.high, log=values.log)
    return FloatDistribution(values.low, values.high, log=values.log)


class _Grid(optuna.samplers.BaseSampler):
    """The points of a grid in order. Unlike Optuna's own it skips the numbers that later attempts at a point take."""

    def __init__(self, search: dict[str, Range | Choices]):
        self._choices = {name: values.choices for name, values in search.items() if isinstance(values, Choices)}

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        points_before = sum(
            attempt.number < point_number(trial)
            and not {Attribute.POINT, Attribute.SURPLUS} & attempt.user_attrs.keys()
            for attempt in study.get_trials(deepcopy=False)
        )
        sizes = [len(choices) for choices in self._choices.values()]
        indices = np.unravel_index(points_before % int(np.prod(sizes)), sizes)
        return self._choices[param_name][int(dict(zip(self._choices, indices, strict=True))[param_name])]
