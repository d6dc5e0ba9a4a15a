"""UCB1, the rule of UCT. Axis letters: see `azjax/search/selection.py`."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass
from azjax.search.selection import EdgeStatistics, Fold, NodeStatistics, Numbers, Selection

DECIDED = "decided"
"""In `Selection.sums`: visits whose return was not zero."""


class Ucb1Terms(NamedTuple):
    """`width` is 1 / sqrt(n)."""

    q: Numbers
    width: Numbers


@pytree_dataclass
class Ucb1(Selection):
    """Mean return + c sqrt(ln N / n), Auer et al. 2002, as in UCT (Kocsis and Szepesvari 2006).

    Every action is tried once before any is tried again. The decided visits of each node are counted.
    """

    exploration: Float32[Array, ""]

    def init(self, prior: Numbers) -> Ucb1Terms:
        return Ucb1Terms(jnp.full_like(prior, jnp.inf), jnp.zeros_like(prior))

    def update(self, edge: EdgeStatistics) -> Ucb1Terms:
        return Ucb1Terms(edge.q, 1 / jnp.sqrt(edge.visits))

    def node_terms(self, node: NodeStatistics, fold: Fold) -> Float32[Array, "R"]:
        del fold
        return self.exploration * jnp.sqrt(jnp.log(jnp.maximum(node.visits, 1)))

    def score(
        self, key: Key[Array, "R"] | None, depth: Int32[Array, ""], node_terms: Numbers, edge_terms: Ucb1Terms
    ) -> Float32[Array, "R"]:
        del key, depth
        return edge_terms.q + node_terms * edge_terms.width

    def sums(self, value: Numbers) -> Mapping[str, Numbers]:
        return {DECIDED: (value != 0).astype(jnp.float32)}
