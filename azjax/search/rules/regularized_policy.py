"""Search as regularized policy optimization. Axis letters: see `azjax/search/selection.py`; `B` batch, `K` slots."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.selection import EdgeStatistics, Fold, NodeStatistics, Numbers, Selection, gumbel

_STEPS = 12  # of Newton's method, which converges from below without overshooting
_TINY = 1e-12


class PolicyTerms(NamedTuple):
    q: Numbers
    prior: Numbers
    visits: Numbers


@pytree_dataclass
class RegularizedPolicy(Selection):
    """Samples from the policy y that makes Q y - l KL(P, y) highest, Grill et al. 2020, proposition 1 and equation 9.

    y(a) = l P(a) / (alpha - Q(a)), where alpha makes the sum 1 and l = c_puct sqrt(N) / (`num_actions` + N) for N
    visits of all edges. An edge without a child has the node's mean value as its Q. The training target is y at the
    root.
    """

    c_puct: Float32[Array, ""]
    num_actions: int = static_field()

    @property
    def is_random(self) -> bool:
        return True

    def init(self, prior: Numbers) -> PolicyTerms:
        return PolicyTerms(jnp.zeros_like(prior), prior, jnp.zeros_like(prior))

    def update(self, edge: EdgeStatistics) -> PolicyTerms:
        return PolicyTerms(edge.q, edge.prior, edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> tuple[Array, Array, Array, Array]:
        visits, value, zeros = node.visits - 1, node.value, jnp.zeros_like(node.value)
        weight = self.c_puct * jnp.sqrt(jnp.maximum(visits, 1)) / (self.num_actions + visits)

        def add_bounds(totals: tuple[Array, Array], edges: PolicyTerms) -> tuple[Array, Array]:
            lowest, untried = totals
            exists, q = edges.q > -jnp.inf, jnp.where(edges.visits > 0, edges.q, value)
            untried += jnp.sum(jnp.where(exists & (edges.visits == 0), edges.prior, 0.0), axis=0)
            return jnp.maximum(lowest, jnp.max(jnp.where(exists, q + weight * edges.prior, -jnp.inf), axis=0)), untried

        def newton(_: Int32[Array, ""], alpha: Array) -> Array:
            def add_shares(totals: tuple[Array, Array], edges: PolicyTerms) -> tuple[Array, Array]:
                gap = jnp.maximum(alpha - jnp.where(edges.visits > 0, edges.q, value), _TINY)
                share = jnp.where(edges.q > -jnp.inf, weight * edges.prior / gap, 0.0)
                return totals[0] + jnp.sum(share, axis=0), totals[1] + jnp.sum(share / gap, axis=0)

            total, slope = fold(add_shares, (zeros, zeros))
            return alpha + (total - 1) / jnp.maximum(slope, _TINY)

        lowest, untried = fold(add_bounds, (zeros - jnp.inf, zeros))
        return jax.lax.fori_loop(0, _STEPS, newton, lowest), weight, value, untried

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: tuple[Array, ...],
        edge_terms: PolicyTerms,
    ) -> Float32[Array, "R"]:
        alpha, weight, value, untried = node_terms
        tried = edge_terms.visits > 0
        share = weight * jnp.where(tried, edge_terms.prior, untried)
        policy = share / jnp.maximum(alpha - jnp.where(tried, edge_terms.q, value), _TINY)
        return jnp.log(jnp.maximum(policy, _TINY)) + gumbel(key)

    def target(
        self, prior: Float32[Array, "B K"], visits: Int32[Array, "B K"], q: Float32[Array, "B K"]
    ) -> Float32[Array, "B K"]:
        total, exists = jnp.sum(visits, axis=1).astype(jnp.float32), prior >= 0
        mean = jnp.sum(visits * q, axis=1) / jnp.maximum(total, 1)
        edges = PolicyTerms(jnp.where(exists, q, -jnp.inf).T, prior.T, visits.T.astype(jnp.float32))
        node = NodeStatistics(1 + total, mean, mean, jnp.int32(0), {})
        alpha, weight, _, _ = self.node_terms(node, lambda function, start: function(start, edges))
        gap = jnp.maximum(alpha[:, None] - jnp.where(visits > 0, q, mean[:, None]), _TINY)
        return jnp.where(exists, weight[:, None] * prior / gap, 0.0)
