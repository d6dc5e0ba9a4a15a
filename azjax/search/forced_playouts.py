"""Forced playouts at the root, and the policy target without them. Axis letters: see `tree.py`.

Wu 2019, "Accelerating Self-Play Learning in Go", section 3.2: noise at the root is tried out in earnest, and what the
search did for its sake alone is taken out of what the network learns.
"""

import chex
import jax.numpy as jnp

from azjax.core.pytree import pytree_dataclass
from azjax.search.selection import Fold, Puct


@pytree_dataclass
class ForcedPuct(Puct):
    """`Puct` that goes to each visited child of a root until it has sqrt(k P N) visits, N being those of its edges.

    The first features are those of `Puct`; the third is the N up to which the edge is not forced.

    forced_playouts: float32 []; k.
    """

    forced_playouts: chex.Array

    def features(self, value: chex.Array, prior: chex.Array, visits: chex.Array) -> tuple[chex.Array, ...]:
        # A prior may underflow to 0: nothing is forced then.
        return *Puct.features(self, value, prior, visits), visits**2 / (self.forced_playouts * prior)

    def untried_features(self, prior: chex.Array) -> tuple[chex.Array, ...]:
        return *Puct.untried_features(self, prior), jnp.full_like(prior, jnp.inf)

    def terms(self, visits: chex.Array, place: chex.Array, fold: Fold) -> tuple[chex.Array, chex.Array]:
        is_root = place < len(place)
        return Puct.terms(self, visits, place, fold), jnp.where(is_root, visits - 1, 0.0)

    def score(self, terms: tuple, features: tuple[chex.Array, ...]) -> chex.Array:
        exploration, root_visits = terms
        value, weight, enough = features
        return jnp.where(enough < root_visits, jnp.inf, value + exploration * weight)


def puct(
    c_puct: chex.Numeric, first_play_urgency: chex.Numeric = 0.0, forced_playouts: chex.Numeric | None = None
) -> Puct:
    """The rule of selection of `alphazero_policy` with these options."""
    options = [c_puct, first_play_urgency] + ([] if forced_playouts is None else [forced_playouts])
    numbers = [jnp.asarray(option, jnp.float32) for option in options]
    return Puct(*numbers) if forced_playouts is None else ForcedPuct(*numbers)


def without_forced(selection: ForcedPuct, prior: chex.Array, visits: chex.Array, q: chex.Array) -> chex.Array:
    """Visits int32 [B, K] that are left for the policy target ("policy target pruning").

    Every slot but the most visited loses up to sqrt(k P N) of them, as long as its score stays below that of the most
    visited one; and a single visit that is left is dropped.

    Args:
      selection: the rule of the search.
      prior: float32 [B, K]; what the search took for the priors of the root's slots, noise included; -1 in holes.
      visits: int32 [B, K]; of the slots.
      q: float32 [B, K]; their mean returns.
    """
    total = jnp.sum(visits, axis=1, keepdims=True)
    # As the search had it at the end.
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
