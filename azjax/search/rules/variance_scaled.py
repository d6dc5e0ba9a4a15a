"""PUCT that explores more where values vary. Axis letters: see `azjax/search/selection.py`."""

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float32

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.rules.puct import Puct
from azjax.search.selection import Fold, NodeStatistics, Numbers
from azjax.search.tree import WEIGHT

SQUARES = "squares"
"""In `Selection.sums`: the squares of the returns."""


@pytree_dataclass
class VarianceScaledPuct(Puct):
    """`Puct` whose c_puct rises and falls with the standard deviation s of a node's values, as in KataGo 1.8 and later.

    c_puct is multiplied by 1 + scale (s / prior_deviation - 1), where s counts `prior_weight` visits with the deviation
    `prior_deviation` beside the node's own (Wu, KataGoMethods.md, "Dynamic Variance-Scaled cPUCT"; the defaults are
    KataGo's). It is for games that pay at the end alone: a reward on the way to a node would count as variance.

    Raises:
      InputError: the evaluator gives expected errors, by which the means are weighted and the squares would not be.
    """

    prior_deviation: float = static_field(default=0.4)
    prior_weight: float = static_field(default=2.0)
    scale: float = static_field(default=0.85)

    def sums(self, value: Numbers) -> Mapping[str, Numbers]:
        return {SQUARES: value**2}

    def node_terms(self, node: NodeStatistics, fold: Fold) -> Float32[Array, "R"]:
        if WEIGHT in node.sums:
            raise InputError("variance_scaled goes without the expected errors of an evaluator")
        mean_square = node.value**2
        squares = jnp.maximum(node.sums[SQUARES], mean_square * node.visits)  # which rounding may put above them
        prior = (mean_square + self.prior_deviation**2) * self.prior_weight
        variance = (prior + squares) / jnp.maximum(self.prior_weight + node.visits - 1, 1e-6) - mean_square
        deviation = jnp.where(node.visits > 1, jnp.sqrt(jnp.maximum(variance, 0)), self.prior_deviation)
        factor = 1 + self.scale * (deviation / self.prior_deviation - 1)
        return factor * Puct.node_terms(self, node, fold)
