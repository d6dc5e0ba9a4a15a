"""Qs between the lowest and the highest at their node. Axis letters: see `azjax/search/selection.py`."""

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float32

from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.rules.q_transform import SMALLEST_SPREAD, QTransform, VisitedEdges
from azjax.search.selection import Fold, NodeStatistics

_Totals: TypeAlias = tuple[Array, Array, Array]


class QRange(NamedTuple):
    """`scale` is 1 / (highest - lowest)."""

    lowest: Float32[Array, "..."]
    scale: Float32[Array, "..."]


@pytree_dataclass
class NormalizedQ(QTransform):
    """Q stretched to 0..1 between the lowest and the highest of the node's mean value and its children's Qs.

    An edge without a child has 0, as in mctx.

    epsilon: the smallest range that is stretched.
    """

    epsilon: float = static_field(default=SMALLEST_SPREAD)

    def summarize(self, node: NodeStatistics, fold: Fold) -> QRange:
        def add_edges(totals: _Totals, edges: VisitedEdges) -> _Totals:
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
        return QRange(lowest, 1 / jnp.maximum(highest - lowest, self.epsilon))

    def scaled(self, summary: QRange, edges: VisitedEdges) -> Float32[Array, "..."]:
        return jnp.where(edges.visits > 0, (edges.q - summary.lowest) * summary.scale, edges.q)
