"""The Qs of Gumbel AlphaZero, completed and scaled. Axis letters: see `azjax/search/selection.py`."""

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from azjax.core.arrays import TINY, max_over_slots, sum_over_slots
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.rules.q_transform import HIGHEST_EXPONENT, SMALLEST_SPREAD, QTransform, VisitedEdges
from azjax.search.selection import Fold, NodeStatistics

_Totals: TypeAlias = tuple[Array, Array, Array, Array, Array, Array]


class NodeSummary(NamedTuple):
    """What the completed Qs of a node's edges need.

    mixed: the mixed value, the completed Q of edges without visits.
    lowest: of the completed Qs.
    highest: of the Qs of edges with visits; the mixed value where there are none.
    scale: of the completed Qs.
    """

    mixed: Float32[Array, "..."]
    lowest: Float32[Array, "..."]
    highest: Float32[Array, "..."]
    scale: Float32[Array, "..."]


@pytree_dataclass
class CompletedQ(QTransform):
    """sigma(completed Q), Danihelka et al. 2022, section 4 and appendix D: edges without visits have the mixed value.

    maxvisit_init, value_scale, rescale_values: see `SearchHyper`.
    num_actions: A. As in mctx, the range of Q includes the mixed value if any action has no visits, and illegal actions
      have none.
    use_mixed_value: edges without visits have the node's evaluation if False.
    epsilon: the smallest range of Q that is stretched to 0..1.
    """

    maxvisit_init: Float32[Array, ""]
    value_scale: Float32[Array, ""]
    rescale_values: Bool[Array, ""]
    num_actions: int = static_field()
    use_mixed_value: bool = static_field(default=True)
    epsilon: float = static_field(default=SMALLEST_SPREAD)

    def summarize(self, node: NodeStatistics, fold: Fold) -> NodeSummary:
        value, visits = node.evaluation, node.visits

        def add_edges(totals: _Totals, edges: VisitedEdges) -> _Totals:
            num_tried, most_visits, prior_tried, excess, lowest, highest = totals
            q, prior, edge_visits = edges.q, edges.prior, edges.visits
            tried = (edge_visits > 0) & (q > -jnp.inf)
            return (
                num_tried + jnp.sum(tried, axis=0, dtype=jnp.int32),
                jnp.maximum(most_visits, max_over_slots(jnp.where(tried, edge_visits, 0.0))[0]),
                prior_tried + sum_over_slots(jnp.where(tried, prior, 0.0)),
                excess + sum_over_slots(jnp.where(tried, prior * (q - value[None]), 0.0)),
                jnp.minimum(lowest, -max_over_slots(jnp.where(tried, -q, -jnp.inf))[0]),
                jnp.maximum(highest, max_over_slots(jnp.where(tried, q, -jnp.inf))[0]),
            )

        none, zeros = jnp.zeros(visits.shape, jnp.int32), jnp.zeros_like(visits)
        start = none, zeros, zeros, zeros, zeros + jnp.inf, zeros - jnp.inf
        num_tried, most_visits, prior_tried, excess, lowest, highest = fold(add_edges, start)
        # (value + sum N * sum(P Q) / sum P) / (1 + sum N), in a form that is exact where all Q equal the value: their
        # range, which is stretched, is then 0 and not a rounding error.
        mixed = value
        if self.use_mixed_value:
            mixed = value + (visits - 1) / visits * (excess / jnp.maximum(prior_tried, TINY))
        counts = num_tried < self.num_actions
        lowest = jnp.where(counts, jnp.minimum(lowest, mixed), lowest)
        spread = jnp.where(counts, jnp.maximum(highest, mixed), highest) - lowest
        spread = jnp.where(self.rescale_values, jnp.maximum(spread, self.epsilon), 1.0)
        return NodeSummary(
            mixed=mixed,
            lowest=lowest,
            highest=jnp.where(num_tried > 0, highest, mixed),
            scale=(self.maxvisit_init + most_visits) * self.value_scale / spread,
        )

    def scaled(self, summary: NodeSummary, edges: VisitedEdges) -> Float32[Array, "..."]:
        """sigma(completed Q), less that of the lowest."""
        completed = jnp.where(edges.visits > 0, edges.q, summary.mixed)
        return (completed - summary.lowest) * summary.scale

    def weight(self, summary: NodeSummary, edges: VisitedEdges) -> Float32[Array, "..."]:
        """Proportional to the improved policy, in float32's range; the exponent of the highest Q is 0."""
        completed = jnp.where(edges.visits > 0, edges.q, summary.mixed)
        exponent = (completed - summary.highest) * summary.scale
        return edges.prior * jnp.exp(jnp.minimum(exponent, HIGHEST_EXPONENT))
