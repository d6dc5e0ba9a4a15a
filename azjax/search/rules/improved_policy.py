"""The rule of Gumbel AlphaZero below the root. Axis letters: see `azjax/search/selection.py`."""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.selection import LOST, EdgeStatistics, Fold, NodeStatistics, Numbers, Selection

_TINY = float(np.finfo(np.float32).tiny)
_SMALLEST_SPREAD = 1e-8  # of Q that is stretched to 0..1, as in mctx
_HIGHEST_EXPONENT = 80.0  # e^80 is within the range of float32, and 1 is negligible beside it


class ImprovedTerms(NamedTuple):
    q: Numbers
    prior: Numbers
    visits: Numbers


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


class ImprovedNodeTerms(NamedTuple):
    """`inverse_total` is 1 / the sum of the weights of all edges, `inverse_visits` 1 / the visits of the node."""

    summary: NodeSummary
    inverse_total: Float32[Array, "R"]
    inverse_visits: Float32[Array, "R"]


_Totals: TypeAlias = tuple[Array, Array, Array, Array, Array, Array]


@pytree_dataclass
class ImprovedPolicy(Selection):
    """pi'(a) - N(a) / (1 + sum N), Danihelka et al. 2022, equation 14: visits follow the improved policy pi'.

    pi' is the softmax of logits + sigma(completed Q).

    maxvisit_init, value_scale, rescale_values: see `SearchHyper`.
    num_actions: A. As in mctx, the range of Q includes the mixed value if any action has no visits, and illegal actions
      have none.
    """

    maxvisit_init: Float32[Array, ""]
    value_scale: Float32[Array, ""]
    rescale_values: Bool[Array, ""]
    num_actions: int = static_field()

    def init(self, prior: Numbers) -> ImprovedTerms:
        return ImprovedTerms(jnp.zeros_like(prior), prior, jnp.zeros_like(prior))

    def update(self, edge: EdgeStatistics) -> ImprovedTerms:
        # The range of Q is stretched to 0..1, which a proven loss would fill alone.
        return ImprovedTerms(jnp.where(edge.q <= LOST, -1.0, edge.q), edge.prior, edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> ImprovedNodeTerms:
        summary = self.summarize(node, fold)

        def add_weights(total: Float32[Array, "R"], edges: ImprovedTerms) -> Float32[Array, "R"]:
            rows = jax.tree.map(lambda term: term[None], summary)
            return total + jnp.sum(jnp.where(edges.q > -jnp.inf, self._weight(rows, edges), 0.0), axis=0)

        total = fold(add_weights, jnp.zeros_like(node.visits))
        return ImprovedNodeTerms(summary, 1 / jnp.maximum(total, _TINY), 1 / node.visits)

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: ImprovedNodeTerms,
        edge_terms: ImprovedTerms,
    ) -> Float32[Array, "R"]:
        del key, depth
        improved = self._weight(node_terms.summary, edge_terms) * node_terms.inverse_total
        return improved - edge_terms.visits * node_terms.inverse_visits

    def summarize(self, node: NodeStatistics, fold: Fold) -> NodeSummary:
        """The summary of nodes, over whose edges `fold` goes."""
        value, visits = node.evaluation, node.visits

        def add_edges(totals: _Totals, edges: ImprovedTerms) -> _Totals:
            num_tried, most_visits, prior_tried, excess, lowest, highest = totals
            q, prior, edge_visits = edges
            tried = (edge_visits > 0) & (q > -jnp.inf)
            return (
                num_tried + jnp.sum(tried, axis=0),
                jnp.maximum(most_visits, jnp.max(jnp.where(tried, edge_visits, 0.0), axis=0)),
                prior_tried + jnp.sum(jnp.where(tried, prior, 0.0), axis=0),
                excess + jnp.sum(jnp.where(tried, prior * (q - value[None]), 0.0), axis=0),
                jnp.minimum(lowest, jnp.min(jnp.where(tried, q, jnp.inf), axis=0)),
                jnp.maximum(highest, jnp.max(jnp.where(tried, q, -jnp.inf), axis=0)),
            )

        none, zeros = jnp.zeros(visits.shape, jnp.int32), jnp.zeros_like(visits)
        start = none, zeros, zeros, zeros, zeros + jnp.inf, zeros - jnp.inf
        num_tried, most_visits, prior_tried, excess, lowest, highest = fold(add_edges, start)
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

    def scaled_q(self, summary: NodeSummary, edges: ImprovedTerms) -> Float32[Array, "L R"]:
        """sigma(completed Q), less that of the lowest."""
        completed = jnp.where(edges.visits > 0, edges.q, summary.mixed[None])
        return (completed - summary.lowest[None]) * summary.scale[None]

    def _weight(self, summary: NodeSummary, edges: ImprovedTerms) -> Float32[Array, "..."]:
        """Proportional to the improved policy, in float32's range; the exponent of the highest Q is 0."""
        completed = jnp.where(edges.visits > 0, edges.q, summary.mixed)
        exponent = (completed - summary.highest) * summary.scale
        return edges.prior * jnp.exp(jnp.minimum(exponent, _HIGHEST_EXPONENT))
