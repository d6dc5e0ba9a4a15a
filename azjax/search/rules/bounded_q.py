"""Qs between given bounds. Axis letters: see `azjax/search/selection.py`."""

import jax.numpy as jnp
from jaxtyping import Array, Float32

from azjax.core.pytree import pytree_dataclass
from azjax.search.rules.q_transform import QTransform, VisitedEdges
from azjax.search.selection import Fold, NodeStatistics


@pytree_dataclass
class BoundedQ(QTransform):
    """(Q - min_value) / (max_value - min_value); 0 for edges without a child."""

    min_value: Float32[Array, ""]
    max_value: Float32[Array, ""]

    def summarize(self, node: NodeStatistics, fold: Fold) -> None:
        del node, fold

    def scaled(self, summary: None, edges: VisitedEdges) -> Float32[Array, "..."]:
        del summary
        return jnp.where(edges.visits > 0, (edges.q - self.min_value) / (self.max_value - self.min_value), 0.0)
