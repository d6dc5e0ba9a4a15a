"""A soft rule that backs up soft values. Axis letters: see `azjax/search/selection.py`."""

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from azjax.core.pytree import pytree_dataclass, static_field
from azjax.search.selection import LOST, EdgeStatistics, Fold, NodeStatistics, Numbers, Selection, VisitedTerms, gumbel

_TINY = 1e-30


@pytree_dataclass
class RelativeEntropy(Selection):
    """Relative-entropy tree search, Dam et al. 2021 (RENTS): MENTS (Xiao et al. 2019) with the network's prior.

    The value of a node is t log sum P exp(Q / t), with t = `temperature`, and its policy P exp(Q / t) over their sum.
    A simulation samples from (1 - m) policy + m P, with m = `exploration` / log(1 + visits) up to 1; MENTS mixes with
    the uniform policy. An edge without a child has the node's evaluation as its Q.
    """

    temperature: float = static_field(default=0.1)
    exploration: float = static_field(default=0.5)

    is_random = True

    def init(self, prior: Numbers) -> VisitedTerms:
        return VisitedTerms.untried(prior)

    def update(self, edge: EdgeStatistics) -> VisitedTerms:
        # What the child handed up last, in place of a mean.
        return VisitedTerms(jnp.where(edge.value <= LOST, -1.0, edge.value), edge.prior, edge.visits)

    def node_terms(self, node: NodeStatistics, fold: Fold) -> tuple[Array, Array, Array, Array]:
        value, untried = self._soft_value(node, fold)
        mix = jnp.minimum(self.exploration / jnp.log1p(jnp.maximum(node.visits, 1)), 1.0)
        return value, node.evaluation, untried, mix

    def score(
        self,
        key: Key[Array, "R"] | None,
        depth: Int32[Array, ""],
        node_terms: tuple[Array, ...],
        edge_terms: VisitedTerms,
    ) -> Float32[Array, "R"]:
        value, evaluation, untried, mix = node_terms
        tried = edge_terms.visits > 0
        q, prior = jnp.where(tried, edge_terms.q, evaluation), jnp.where(tried, edge_terms.prior, untried)
        policy = prior * ((1 - mix) * jnp.exp((q - value) / self.temperature) + mix)
        return jnp.log(jnp.maximum(policy, _TINY)) + gumbel(key)

    def backward(self, value: Float32[Array, "R"], node: NodeStatistics, fold: Fold) -> Float32[Array, "R"]:
        return self._soft_value(node, fold)[0]

    def _soft_value(self, node: NodeStatistics, fold: Fold) -> tuple[Float32[Array, "R"], Float32[Array, "R"]]:
        """The value, and the prior of all edges without a child."""
        zeros = jnp.zeros_like(node.evaluation)

        def highest(best: Array, edges: VisitedTerms) -> Array:
            return jnp.maximum(best, jnp.max(jnp.where(edges.visits > 0, edges.q, -jnp.inf), axis=0))

        best = jnp.maximum(fold(highest, zeros - jnp.inf), node.evaluation)

        def add(totals: tuple[Array, Array], edges: VisitedTerms) -> tuple[Array, Array]:
            exists, tried = edges.q > -jnp.inf, edges.visits > 0
            q = jnp.where(tried, edges.q, node.evaluation[None])
            weight = jnp.where(exists, edges.prior * jnp.exp((q - best[None]) / self.temperature), 0.0)
            untried = jnp.where(exists & ~tried, edges.prior, 0.0)
            return totals[0] + jnp.sum(weight, axis=0), totals[1] + jnp.sum(untried, axis=0)

        total, untried = fold(add, (zeros, zeros))
        return best + self.temperature * jnp.log(jnp.maximum(total, _TINY)), untried
