"""MuZero's PUCT, whose Q is stretched to 0..1 at each node. Axis letters: see `azjax/search/selection.py`."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass
from azjax.search.selection import EdgeStatistics, Fold, NodeStatistics, Numbers, Selection

_SMALLEST_SPREAD = 1e-8  # of Q that is stretched to 0..1, as in mctx


class MinMaxTerms(NamedTuple):
    """`weight` is P / (1 + n)."""

    q: Numbers
    weight: Numbers
    visits: Numbers


@pytree_dataclass
class MinMaxPuct(Selection):
    """Q + P sqrt(N) / (1 + n) (c_1 + log((1 + N + c_2) / c_2)), Schrittwieser et al. 2020, appendix B.

    N are the visits of the node, its own evaluation included, and n those of the child. Q is stretched to 0..1 between
    the lowest and the highest of the node's mean value and its children's Qs, as in mctx; an unvisited child has 0.

    pb_c_init, pb_c_base: c_1 and c_2.
    """

    pb_c_init: Float32[Array, ""]
    pb_c_base: Float32[Array, ""]

    def init(self, prior: Numbers) -> MinMaxTerms:
        return MinMaxTerms(jnp.zeros_like(prior), prior, jnp.zeros_like(prior))

    def update(self, edge: EdgeStatistics) -> MinMaxTerms:
        return MinMaxTerms(edge.q, edge.prior / (1 + edge.visits), edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> tuple[Array, Array, Array]:
        def add_edges(totals: tuple[Array, Array, Array], edges: MinMaxTerms) -> tuple[Array, Array, Array]:
            total, lowest, highest = totals
            tried = (edges.visits > 0) & (edges.q > -jnp.inf)
            return (
                total + jnp.sum(jnp.where(tried, edges.visits * edges.q, 0.0), axis=0),
                jnp.minimum(lowest, jnp.min(jnp.where(tried, edges.q, jnp.inf), axis=0)),
                jnp.maximum(highest, jnp.max(jnp.where(tried, edges.q, -jnp.inf), axis=0)),
            )

        zeros = jnp.zeros_like(node.visits)
        total, lowest, highest = fold(add_edges, (zeros, zeros + jnp.inf, zeros - jnp.inf))
        mean = (node.evaluation + total) / node.visits
        lowest, highest = jnp.minimum(lowest, mean), jnp.maximum(highest, mean)
        exploration = self.pb_c_init + jnp.log((node.visits + self.pb_c_base + 1) / self.pb_c_base)
        return lowest, 1 / jnp.maximum(highest - lowest, _SMALLEST_SPREAD), exploration * jnp.sqrt(node.visits)

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: tuple[Array, Array, Array],
        edge_terms: MinMaxTerms,
    ) -> Float32[Array, "R"]:
        del key, depth
        lowest, scale, exploration = node_terms
        q, weight, visits = edge_terms
        return jnp.where(visits > 0, (q - lowest) * scale, q) + exploration * weight
