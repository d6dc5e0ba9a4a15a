"""Forced playouts at the root, and the policy target without them. Axis letters: see `tree.py`; `R` nodes or edges.

Wu 2019, "Accelerating Self-Play Learning in Go", section 3.2: actions that noise favors get some visits in any case,
and the network does not learn from visits that were forced.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float32, Int32, PyTree, Real

from azjax.core.pytree import pytree_dataclass
from azjax.search.draws import Number
from azjax.search.selection import Features, Fold, Numbers, Puct


@pytree_dataclass
class ForcedPuct(Puct):
    """`Puct` that prefers each visited child of a root until it has sqrt(k P N) visits, k being `forced_playouts`.

    N is the number of visits of all edges. A third feature is the N up to which the edge is not forced.
    """

    forced_playouts: Float32[Array, ""]

    def features(self, value: Numbers, prior: Numbers, visits: Numbers) -> Features:
        # A prior may underflow to 0: then nothing is forced.
        return *Puct.features(self, value, prior, visits), visits**2 / (self.forced_playouts * prior)

    def untried_features(self, prior: Numbers) -> Features:
        return *Puct.untried_features(self, prior), jnp.full_like(prior, jnp.inf)

    def terms(self, visits: Float32[Array, "R"], index: Int32[Array, "R"], fold: Fold) -> PyTree:
        is_root = index < len(index)
        return Puct.terms(self, visits, index, fold), jnp.where(is_root, visits - 1, 0.0)

    def score(self, terms: PyTree, features: Features) -> Float32[Array, "..."]:
        exploration, root_visits = terms
        value, weight, enough = features
        return jnp.where(enough < root_visits, jnp.inf, value + exploration * weight)


def puct(
    c_puct: Number, first_play_urgency: Real[ArrayLike, ""] = 0.0, forced_playouts: Real[ArrayLike, ""] | None = None
) -> Puct:
    """The rule of selection of `alphazero_policy` with these options."""
    options = [c_puct, first_play_urgency] + ([] if forced_playouts is None else [forced_playouts])
    numbers = [jnp.asarray(option, jnp.float32) for option in options]
    return Puct(*numbers) if forced_playouts is None else ForcedPuct(*numbers)


def prune_forced(
    selection: ForcedPuct, prior: Float32[Array, "B K"], visits: Int32[Array, "B K"], q: Float32[Array, "B K"]
) -> Int32[Array, "B K"]:
    """The visits that count for the policy target ("policy target pruning").

    Every slot but the most visited loses up to sqrt(k P N) visits, as long as its score stays below that of the most
    visited one; a single visit that remains is dropped.

    Args:
      selection: the rule of the search.
      prior: of the root's slots as the search had it, noise included; -1 in holes.
      visits: of the slots.
      q: their mean returns.
    """
    total = jnp.sum(visits, axis=1, keepdims=True)
    exploration = selection.c_puct.reshape(-1, 1) * jnp.sqrt(jnp.maximum(total, 1).astype(jnp.float32))
    weight = exploration * jnp.maximum(prior, 0)
    is_best = jnp.arange(visits.shape[1])[None] == jnp.argmax(visits, axis=1)[:, None]
    best_score = jnp.sum(jnp.where(is_best, q + weight / (1 + visits), 0.0), axis=1, keepdims=True)
    # The fewest visits with which the score stays below: weight / (1 + n) < best - Q.
    gap = best_score - q
    fewest = jnp.where(gap > 0, jnp.floor(weight / jnp.where(gap > 0, gap, 1.0)), jnp.inf)
    forced = jnp.floor(jnp.sqrt(selection.forced_playouts * jnp.maximum(prior, 0) * total))
    kept = jnp.minimum(jnp.maximum(visits - forced, fewest), visits)
    kept = jnp.where(kept <= 1, 0, kept).astype(jnp.int32)
    return jnp.where(is_best, visits, kept)
