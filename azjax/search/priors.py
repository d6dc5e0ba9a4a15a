"""Priors over the slots of a node, and the best slot without a child. Axis letters: see `tree.py`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from azjax.core.arrays import max_over_slots, sum_over_slots


class Untried(NamedTuple):
    """The slots of nodes that have no child.

    slot: the one of the highest prior, the lowest such slot on ties.
    prior: its prior, -1 where every slot has a child.
    mass: the sum of their priors, -1 where every slot has a child; None where no rule folds over edges.
    """

    slot: Int32[Array, "*R"]
    prior: Float32[Array, "*R"]
    mass: Float32[Array, "*R"] | None

    def rows(self) -> Float32[Array, "R U"]:
        """Side by side; a slot is below 2^24, and so exact."""
        columns = self.slot.astype(jnp.float32), self.prior, self.mass
        return jnp.stack([column for column in columns if column is not None], axis=-1)


def legal_logits(prior_logits: Float32[Array, "K B"], valid: Bool[Array, "..."]) -> Float32[Array, "K B"]:
    """Finite logits, and -inf in holes. NaN counts as the lowest. XLA vectorizes reductions over the first axis."""
    limits = jnp.finfo(jnp.float32)  # type: ignore[no-untyped-call]
    finite = jnp.clip(jnp.where(jnp.isnan(prior_logits), limits.min, prior_logits), limits.min, limits.max)
    return jnp.where(valid, finite, -jnp.inf)


def legal_softmax(logits: Float32[Array, "K B"]) -> Float32[Array, "K B"]:
    """Probabilities of `legal_logits`, -1 in holes."""
    # NaN where no slot is legal; every slot is a hole there.
    weights = jnp.exp(logits - max_over_slots(logits))
    return jnp.where(logits == -jnp.inf, -1.0, weights / sum_over_slots(weights)[None])


def untried_of(prior: Float32[Array, "K R"], with_mass: bool) -> Untried:
    """The slots without a child, from their priors, which are -1 elsewhere."""
    # Two plain reductions over the first axis: XLA vectorizes those, and not the paired one behind argmax. The bits of
    # floats from 0 up are in the order of the floats, and those of -1 are below them.
    bits = jax.lax.bitcast_convert_type(prior, jnp.int32)
    slots = jnp.arange(len(bits), dtype=jnp.int32)[:, None]
    best = jnp.max(bits, axis=0)
    slot = jnp.min(jnp.where(bits == best[None], slots, len(bits) - 1), axis=0)
    best_prior = jax.lax.bitcast_convert_type(best, jnp.float32)
    if not with_mass:
        return Untried(slot, best_prior, None)
    mass = sum_over_slots(jnp.maximum(prior, 0))
    return Untried(slot, best_prior, jnp.where(best_prior >= 0, mass, -1.0))
