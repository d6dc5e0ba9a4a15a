"""MuZero's PUCT, with transformed Qs. Axis letters: see `azjax/search/selection.py`."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass
from azjax.search.rules.q_transform import QTransform
from azjax.search.selection import EdgeStatistics, Fold, NodeStatistics, Numbers, Selection


class MuZeroTerms(NamedTuple):
    """`weight` is P / (1 + n)."""

    q: Numbers
    weight: Numbers
    visits: Numbers

    @property
    def prior(self) -> Numbers:
        """P."""
        return self.weight * (1 + self.visits)


@pytree_dataclass
class MuZeroPuct(Selection):
    """Q + P sqrt(N) / (1 + n) (c_1 + log((1 + N + c_2) / c_2)), Schrittwieser et al. 2020, appendix B.

    N are the visits of the node, its own evaluation included, and n those of the child.

    q_transform: of Q; the paper's is `NormalizedQ`.
    pb_c_init, pb_c_base: c_1 and c_2.
    """

    q_transform: QTransform
    pb_c_init: Float32[Array, ""]
    pb_c_base: Float32[Array, ""]

    def init(self, prior: Numbers) -> MuZeroTerms:
        return MuZeroTerms(jnp.zeros_like(prior), prior, jnp.zeros_like(prior))

    def update(self, edge: EdgeStatistics) -> MuZeroTerms:
        return MuZeroTerms(edge.q, edge.prior / (1 + edge.visits), edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> tuple[Any, Array]:
        summary = self.q_transform.summarize(node, fold)
        exploration = self.pb_c_init + jnp.log((node.visits + self.pb_c_base + 1) / self.pb_c_base)
        return summary, exploration * jnp.sqrt(node.visits)

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: tuple[Any, Array],
        edge_terms: MuZeroTerms,
    ) -> Float32[Array, "R"]:
        del key, depth
        summary, exploration = node_terms
        return self.q_transform.scaled(summary, edge_terms) + exploration * edge_terms.weight
