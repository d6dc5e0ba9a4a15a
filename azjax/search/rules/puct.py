"""PUCT, the rule of AlphaGo Zero and AlphaZero. Axis letters: see `azjax/search/selection.py`; `B` batch."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass
from azjax.search.selection import EdgeStatistics, Fold, NodeStatistics, Numbers, Selection


class PuctTerms(NamedTuple):
    """`weight` is P / (1 + N)."""

    q: Numbers
    weight: Numbers


@pytree_dataclass
class Puct(Selection):
    """Q + c P sqrt(max(sum N, 1)) / (1 + N), Silver et al. 2017 (AlphaGo Zero), Methods, "Select".

    N are visits, or their weights where an evaluator gives errors (see `uncertainty.py`).
    The maximum makes the first simulation of a node follow its priors. An edge without a child has
    Q = first_play_urgency.
    """

    c_puct: Float32[Array, ""] | Float32[Array, "B"]
    first_play_urgency: Float32[Array, ""]

    def init(self, prior: Numbers) -> PuctTerms:
        return PuctTerms(jnp.broadcast_to(self.first_play_urgency, prior.shape), prior)

    def update(self, edge: EdgeStatistics) -> PuctTerms:
        return PuctTerms(edge.q, edge.prior / (1 + edge.weight))

    def node_terms(self, node: NodeStatistics, fold: Fold) -> Float32[Array, "R"]:
        del fold
        return by_node(self.c_puct, node) * jnp.sqrt(jnp.maximum(node.weight_below, 1))

    def score(
        self, key: Key[Array, "R"] | None, depth: Int32[Array, ""], node_terms: Numbers, edge_terms: PuctTerms
    ) -> Float32[Array, "R"]:
        del key, depth
        return edge_terms.q + node_terms * edge_terms.weight


def by_node(number: Float32[Array, "*B"], node: NodeStatistics) -> Float32[Array, "..."]:
    """A number, or one for each tree [B], for the nodes [R], of which node r is in tree r modulo B."""
    return number if number.ndim == 0 else jnp.tile(number, len(node.visits) // len(number))
