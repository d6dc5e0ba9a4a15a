"""Search as regularized policy optimization. Axis letters: see `azjax/search/selection.py`; `B` batch, `K` slots."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.selection import EdgeStatistics, Fold, NodeStatistics, Numbers, Selection, VisitedTerms, gumbel

_STEPS = 12  # of Newton's method, which converges from below without overshooting
_TINY = 1e-12


@pytree_dataclass
class RegularizedPolicy(Selection):
    """Samples from the policy y that makes Q y - l KL(P, y) highest, Grill et al. 2020, proposition 1 and equation 9.

    y(a) = l P(a) / (alpha - Q(a)), where alpha makes the sum 1 and l = c_puct sqrt(max(N, 1)) / (`num_slots` + N) for N
    visits of all edges. An edge without a child has the node's mean value as its Q. The training target is y at the
    root, where that mean is of the children alone.
    """

    c_puct: Float32[Array, ""] | Float32[Array, "B"]
    num_slots: int = static_field()

    is_random = True

    def init(self, prior: Numbers) -> VisitedTerms:
        return VisitedTerms.untried(prior)

    def update(self, edge: EdgeStatistics) -> VisitedTerms:
        return VisitedTerms(edge.q, edge.prior, edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> tuple[Array, Array, Array, Array]:
        visits, value, zeros = node.visits - 1, node.value, jnp.zeros_like(node.value)
        weight = self.c_puct * jnp.sqrt(jnp.maximum(visits, 1)) / (self.num_slots + visits)

        def bound(totals: tuple[Array, Array], edges: VisitedTerms) -> tuple[Array, Array]:
            q = jnp.where(edges.visits > 0, edges.q, value[None])
            lowest = jnp.where(edges.q > -jnp.inf, q + weight[None] * edges.prior, -jnp.inf)
            untried = jnp.sum(jnp.where(edges.visits == 0, edges.prior, 0.0), axis=0)
            return jnp.maximum(totals[0], jnp.max(lowest, axis=0)), totals[1] + untried

        def newton(_: Int32[Array, ""], alpha: Array) -> Array:
            def add(totals: tuple[Array, Array], edges: VisitedTerms) -> tuple[Array, Array]:
                gap = jnp.maximum(alpha[None] - jnp.where(edges.visits > 0, edges.q, value[None]), _TINY)
                share = weight[None] * edges.prior / gap
                return totals[0] + jnp.sum(share, axis=0), totals[1] + jnp.sum(share / gap, axis=0)

            total, slope = fold(add, (zeros, zeros))
            return alpha + (total - 1) / jnp.maximum(slope, _TINY)

        lowest, untried = fold(bound, (zeros - jnp.inf, zeros))
        return jax.lax.fori_loop(0, _STEPS, newton, lowest), weight, value, untried

    def score(
        self, key: Key[Array, "R"] | None, depth: Int32[Array, ""], node_terms: tuple[Array, ...], edge_terms: Any
    ) -> Float32[Array, "R"]:
        untried, tried = node_terms[3], edge_terms.visits > 0
        policy = self._policy(node_terms, edge_terms._replace(prior=jnp.where(tried, edge_terms.prior, untried)))
        return jnp.log(jnp.maximum(policy, _TINY)) + gumbel(key)

    def target(
        self, prior: Float32[Array, "B K"], visits: Int32[Array, "B K"], q: Float32[Array, "B K"]
    ) -> Float32[Array, "B K"]:
        counts, exists = visits.astype(jnp.float32), prior >= 0
        total = jnp.sum(counts, axis=1)
        value = jnp.sum(counts * q, axis=1) / jnp.maximum(total, 1)
        edges = VisitedTerms(jnp.where(exists, q, -jnp.inf).T, jnp.maximum(prior, 0).T, counts.T)
        node = NodeStatistics(1 + total, value, value, jnp.int32(0), total, {})
        node_terms = self.node_terms(node, lambda function, start: function(start, edges))
        return self._policy(jax.tree.map(lambda term: term[None], node_terms), edges).T

    def _policy(self, node_terms: tuple[Array, ...], edges: VisitedTerms) -> Array:
        alpha, weight, value, _ = node_terms
        return weight * edges.prior / jnp.maximum(alpha - jnp.where(edges.visits > 0, edges.q, value), _TINY)
