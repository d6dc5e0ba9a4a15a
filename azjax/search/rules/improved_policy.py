"""The rule of Gumbel AlphaZero below the root. Axis letters: see `azjax/search/selection.py`."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.arrays import TINY, sum_over_slots
from azjax.core.pytree import pytree_dataclass
from azjax.search.rules.q_transform import QTransform
from azjax.search.selection import LOST, EdgeStatistics, Fold, NodeStatistics, Numbers, Selection, VisitedTerms


class ImprovedNodeTerms(NamedTuple):
    """`inverse_total` is 1 / the sum of the weights of all edges, `inverse_visits` 1 / the visits of the node."""

    summary: Any
    inverse_total: Float32[Array, "R"]
    inverse_visits: Float32[Array, "R"]


@pytree_dataclass
class ImprovedPolicy(Selection):
    """pi'(a) - N(a) / (1 + sum N), Danihelka et al. 2022, equation 14: visits follow the improved policy pi'.

    pi' is the softmax of logits + sigma(completed Q).

    q_transform: sigma(completed Q) or another transform; the paper's is `CompletedQ`.
    """

    q_transform: QTransform

    def init(self, prior: Numbers) -> VisitedTerms:
        return VisitedTerms.untried(prior)

    def update(self, edge: EdgeStatistics) -> VisitedTerms:
        # The range of Q is stretched to 0..1, which a proven loss would fill alone.
        return VisitedTerms(jnp.where(edge.q <= LOST, -1.0, edge.q), edge.prior, edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> ImprovedNodeTerms:
        summary = self.q_transform.summarize(node, fold)

        def add_weights(total: Float32[Array, "R"], edges: VisitedTerms) -> Float32[Array, "R"]:
            rows = jax.tree.map(lambda term: term[None], summary)
            return total + sum_over_slots(jnp.where(edges.q > -jnp.inf, self.q_transform.weight(rows, edges), 0.0))

        total = fold(add_weights, jnp.zeros_like(node.visits))
        return ImprovedNodeTerms(summary, 1 / jnp.maximum(total, TINY), 1 / node.visits)

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: ImprovedNodeTerms,
        edge_terms: VisitedTerms,
    ) -> Float32[Array, "R"]:
        del key, depth
        improved = self.q_transform.weight(node_terms.summary, edge_terms) * node_terms.inverse_total
        return improved - edge_terms.visits * node_terms.inverse_visits
