"""The rule of selection of Gumbel AlphaZero below the root. Axis letters: see `tree.py`; `R` nodes."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

from azjax.core.arrays import read
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.backward import LOST
from azjax.search.selection import Features, Fold, Numbers
from azjax.search.tree import DISCOUNT, REWARD

_C = TypeVar("_C")

_TINY = float(np.finfo(np.float32).tiny)
_SMALLEST_SPREAD = 1e-8  # of Q that is stretched to 0..1, as in mctx
_HIGHEST_EXPONENT = 80.0  # e^80 is within the range of float32, and 1 is negligible beside it


def proven_or(
    means: Float32[Array, "*R"], facts: Float32[Array, "*R 3"], bounds: Float32[Array, "*R 2"]
) -> Float32[Array, "*R"]:
    """The proven returns of nodes, and their mean returns where nothing is proven."""
    lower, upper = bounds[..., 0], bounds[..., 1]
    return jnp.where(lower == upper, facts[..., REWARD] + facts[..., DISCOUNT] * lower, means)


class NodeSummary(NamedTuple):
    """What the completed Qs of a node's edges need.

    mixed: the mixed value, the completed Q of edges without visits.
    lowest: of the completed Qs.
    highest: of the Qs of edges with visits; the mixed value where there are none.
    scale: of the completed Qs.
    """

    mixed: Float32[Array, "R"]
    lowest: Float32[Array, "R"]
    highest: Float32[Array, "R"]
    scale: Float32[Array, "R"]


class Terms(NamedTuple):
    """Terms of `ImprovedPolicy.score`.

    inverse_total: 1 / the sum of the weights of all edges.
    inverse_visits: 1 / the visits of the node.
    """

    summary: NodeSummary
    inverse_total: Float32[Array, "R"]
    inverse_visits: Float32[Array, "R"]


_Totals: TypeAlias = tuple[Array, Array, Array, Array, Array, Array]


@pytree_dataclass
class ImprovedPolicy:
    """pi'(a) - N(a) / (1 + sum N), Danihelka et al. 2022, equation 14: visits follow the improved policy pi'.

    pi' is the softmax of logits + sigma(completed Q). Features are Q, prior and visits.

    values: the evaluation of each node.
    maxvisit_init, value_scale, rescale_values: see `gumbel_policy`.
    num_actions: A. As in mctx, the range of Q includes the mixed value if any action has no visits, and illegal actions
      have none.
    """

    values: Float32[Array, "NB"]
    maxvisit_init: Float32[Array, ""]
    value_scale: Float32[Array, ""]
    rescale_values: Bool[Array, ""]
    num_actions: int = static_field()

    @property
    def folds(self) -> bool:
        return True

    def features(self, value: Numbers, prior: Numbers, visits: Numbers) -> Features:
        # The range of Q is stretched to 0..1, which `LOST` would fill alone.
        return jnp.where(value <= LOST, -1.0, value), prior, visits

    def untried_features(self, prior: Numbers) -> Features:
        return jnp.zeros_like(prior), prior, jnp.zeros_like(prior)

    def terms(self, visits: Float32[Array, "R"], index: Int32[Array, "R"], fold: Fold) -> Terms:
        summary = self.summarize(visits, index, fold)

        def add_weights(total: Float32[Array, "R"], lanes: Features) -> Float32[Array, "R"]:
            exists = lanes[0] > -jnp.inf
            rows = jax.tree.map(lambda term: term[None], summary)
            return total + jnp.sum(jnp.where(exists, self._weight(rows, lanes), 0.0), axis=0)

        total = fold(add_weights, jnp.zeros_like(visits))
        return Terms(summary, 1 / jnp.maximum(total, _TINY), 1 / visits)

    def score(self, terms: Terms, features: Features) -> Float32[Array, "..."]:
        q, _, visits = features
        improved = self._weight(terms.summary, features) * terms.inverse_total
        return jnp.where(q > -jnp.inf, improved - visits * terms.inverse_visits, -jnp.inf)

    def summarize(self, visits: Float32[Array, "R"], index: Int32[Array, "R"], fold: Fold) -> NodeSummary:
        """The summary of nodes at `index` with `visits`, over whose edges `fold` goes."""
        value = read(self.values, index)

        def add_lanes(totals: _Totals, lanes: Features) -> _Totals:
            num_tried, most_visits, prior_tried, excess, lowest, highest = totals
            q, prior, lane_visits = lanes
            tried = lane_visits > 0
            return (
                num_tried + jnp.sum(tried, axis=0),
                jnp.maximum(most_visits, jnp.max(lane_visits, axis=0)),
                prior_tried + jnp.sum(jnp.where(tried, prior, 0.0), axis=0),
                excess + jnp.sum(jnp.where(tried, prior * (q - value[None]), 0.0), axis=0),
                jnp.minimum(lowest, jnp.min(jnp.where(tried, q, jnp.inf), axis=0)),
                jnp.maximum(highest, jnp.max(jnp.where(tried, q, -jnp.inf), axis=0)),
            )

        none, zeros = jnp.zeros(visits.shape, jnp.int32), jnp.zeros_like(visits)
        start = none, zeros, zeros, zeros, zeros + jnp.inf, zeros - jnp.inf
        num_tried, most_visits, prior_tried, excess, lowest, highest = fold(add_lanes, start)
        # (value + sum N * sum(P Q) / sum P) / (1 + sum N), in a form that is exact where all Q equal the value: their
        # range, which is stretched, is then 0 and not a rounding error.
        mixed = value + (visits - 1) / visits * (excess / jnp.maximum(prior_tried, _TINY))
        counts = num_tried < self.num_actions
        lowest = jnp.where(counts, jnp.minimum(lowest, mixed), lowest)
        spread = jnp.where(counts, jnp.maximum(highest, mixed), highest) - lowest
        spread = jnp.where(self.rescale_values, jnp.maximum(spread, _SMALLEST_SPREAD), 1.0)
        return NodeSummary(
            mixed=mixed,
            lowest=lowest,
            highest=jnp.where(num_tried > 0, highest, mixed),
            scale=(self.maxvisit_init + most_visits) * self.value_scale / spread,
        )

    def scaled_q(self, summary: NodeSummary, lanes: Features) -> Float32[Array, "L R"]:
        """sigma(completed Q), less that of the lowest."""
        q, _, visits = lanes
        return (jnp.where(visits > 0, q, summary.mixed[None]) - summary.lowest[None]) * summary.scale[None]

    def _weight(self, summary: NodeSummary, features: Features) -> Float32[Array, "..."]:
        """Proportional to the improved policy, in float32's range; the exponent of the highest Q is 0."""
        q, prior, visits = features
        completed = jnp.where(visits > 0, q, summary.mixed)
        return prior * jnp.exp(jnp.minimum((completed - summary.highest) * summary.scale, _HIGHEST_EXPONENT))


def fold_of(lanes: Features) -> Fold:
    """Over the edges with these features [L, R]."""

    def fold(function: Callable[[_C, Features], _C], start: _C) -> _C:
        return function(start, lanes)

    return fold
