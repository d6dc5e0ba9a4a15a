"""Forced playouts at the root, and the policy target without them. Axis letters: see `azjax/search/selection.py`.

Wu 2019, "Accelerating Self-Play Learning in Go", section 3.2: actions that noise favors get some visits in any case,
and the network does not learn from visits that were forced.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.search.rules.puct import Puct, PuctTerms
from azjax.search.selection import LOST, EdgeStatistics, Fold, NodeStatistics, Numbers, Selection
from azjax.search.tree import WEIGHT


class ForcedTerms(NamedTuple):
    """`enough` is the number of visits of all edges up to which this one is not forced; the others: see `PuctTerms`."""

    q: Numbers
    weight: Numbers
    enough: Numbers


@pytree_dataclass
class ForcedPuct(Selection):
    """`Puct` that prefers each visited child of a root until it has sqrt(k P N) visits, k being `forced_playouts`.

    N is the number of visits of all edges.
    """

    puct: Puct
    forced_playouts: Float32[Array, ""]

    def init(self, prior: Numbers) -> ForcedTerms:
        return ForcedTerms(*self.puct.init(prior), jnp.full_like(prior, jnp.inf))

    def update(self, edge: EdgeStatistics) -> ForcedTerms:
        # A prior may underflow to 0: then nothing is forced.
        return ForcedTerms(*self.puct.update(edge), edge.visits**2 / (self.forced_playouts * edge.prior))

    def node_terms(self, node: NodeStatistics, fold: Fold) -> tuple[Float32[Array, "R"], Float32[Array, "R"]]:
        if WEIGHT in node.sums:
            raise InputError("forced_playouts go without the expected errors of an evaluator")
        return self.puct.node_terms(node, fold), jnp.where(node.depth == 0, node.visits - 1, 0.0)

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: tuple[Numbers, Numbers],
        edge_terms: ForcedTerms,
    ) -> Float32[Array, "R"]:
        exploration, root_visits = node_terms
        score = self.puct.score(key, depth, exploration, PuctTerms(edge_terms.q, edge_terms.weight))
        is_forced = (edge_terms.enough < root_visits) & (edge_terms.q > LOST)
        return jnp.where(is_forced, jnp.inf, score)

    def target(
        self, prior: Float32[Array, "B K"], visits: Int32[Array, "B K"], q: Float32[Array, "B K"]
    ) -> Float32[Array, "B K"]:
        """The visits without those that were forced ("policy target pruning").

        Every slot but the most visited loses up to sqrt(k P N) visits, as long as its score stays below that of the
        most visited one; a single visit that remains of several is dropped.
        """
        counts = visits.astype(jnp.float32)
        total = jnp.sum(counts, axis=1, keepdims=True)
        exploration = self.puct.c_puct.reshape(-1, 1) * jnp.sqrt(jnp.maximum(total, 1))
        weight = exploration * jnp.maximum(prior, 0)
        is_best = jnp.arange(visits.shape[1])[None] == jnp.argmax(visits, axis=1)[:, None]
        best_score = jnp.sum(jnp.where(is_best, q + weight / (1 + counts), 0.0), axis=1, keepdims=True)
        # The fewest visits with which the score stays below: weight / (1 + n) < best - Q.
        gap = best_score - q
        fewest = jnp.where(gap > 0, jnp.floor(weight / jnp.where(gap > 0, gap, 1.0)), jnp.inf)
        forced = jnp.floor(jnp.sqrt(self.forced_playouts * jnp.maximum(prior, 0) * total))
        kept = jnp.minimum(jnp.maximum(counts - forced, fewest), counts)
        return jnp.where(is_best, counts, jnp.where((kept <= 1) & (kept < counts), 0, kept))
