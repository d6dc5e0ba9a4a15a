"""What the two ways to keep edges share: priors of slots, and lanes of edges. Axis letters: see `tree.py`."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import apart, highest, read
from azjax.search.selection import Selection

NO_CHILD = 0
"""In `child`: the root is nobody's child, so its number is free."""


def untried_upper(prior: chex.Array) -> chex.Array:
    """What the returns of edges without a child, of prior [B, K], are known not to exceed."""
    return jnp.where(prior < 0, -1.0, 1.0)


def highest_lane(run: chex.Array, begin: chex.Array, lanes: int) -> chex.Array:
    """float32 [R]: the highest number of `run` in some lanes, which begin at places [R]."""
    highest_yet = read(run, begin)
    for lane in range(1, lanes):
        highest_yet = jnp.maximum(highest_yet, read(run, begin + lane))
    return highest_yet


def untried_features(selection: Selection, prior: chex.Array) -> tuple[chex.Array, ...]:
    """F times float32 [B, K]: of edges without a child, of prior [B, K]."""
    first, *rest = selection.untried_features(prior)
    return jnp.where(prior < 0, -jnp.inf, first), *rest


def lanes_of(features: tuple[chex.Array, ...], place: chex.Array, lanes: int) -> tuple[chex.Array, ...]:
    """[lanes, R]: the features of some lanes, which begin at places [R]."""
    edge = place[None] * lanes + jnp.arange(lanes, dtype=jnp.int32)[:, None]
    return tuple(read(run, edge) for run in features)


def room(num_nodes: int, row: chex.Array) -> chex.Array:
    """[N, ...]: `row` and room for those of other nodes. What no node was made for is never read."""
    return jax.lax.empty((num_nodes, *row.shape), row.dtype).at[0].set(row)


def best_lane(
    features: tuple[chex.Array, ...],
    selection: Selection,
    terms: Any,
    begin: chex.Array,
    best: chex.Array,
    first: int,
    lanes: int,
    node: chex.Array,
) -> chex.Array:
    """The best of the edge `best` [R] and of some lanes, which begin at edges [R]. All in one fusion."""

    def score(edge: chex.Array) -> chex.Array:
        return selection.score(terms, tuple(read(run, edge) for run in features))

    best_score = score(best)
    for lane in range(first, lanes):
        lane_score = score(begin + lane)
        better = lane_score > best_score
        best = jnp.where(better, begin + lane, best)
        best_score = jnp.where(better, lane_score, best_score)
    # With several readers the pieces would be computed apart instead.
    return apart(lambda edge: edge, best, node)


def legal_logits(prior_logits: chex.Array, valid: chex.Array) -> chex.Array:
    """float32 [K, B]: logits [K, B], -inf in holes alone. XLA vectorises reductions over the first axis."""
    return jnp.where(valid, jnp.maximum(prior_logits, jnp.finfo(jnp.float32).min), -jnp.inf)


def legal_softmax(logits: chex.Array) -> chex.Array:
    """Probabilities of `legal_logits`, [K, B]; -1 in holes."""
    # Where no slot is legal this is NaN: the last line keeps it out.
    weights = jnp.exp(logits - highest(logits))
    return jnp.where(logits == -jnp.inf, -1.0, weights / jnp.sum(weights, axis=0, keepdims=True))


def best_untried(prior: chex.Array) -> tuple[chex.Array, chex.Array]:
    """int32 [B], float32 [B]: the slot with the highest of prior [K, B] and that prior; -1 where all are -1."""
    # Two plain reductions over the first axis: XLA vectorises those, and not the paired one behind argmax. The bits of
    # numbers from 0 up are in their order, and below them those of -1.
    bits = jax.lax.bitcast_convert_type(prior, jnp.int32)
    slots = jnp.arange(len(bits), dtype=jnp.int32)[:, None]
    best = jnp.max(bits, axis=0)
    slot = jnp.min(jnp.where(bits == best[None], slots, len(bits) - 1), axis=0)
    return slot, jax.lax.bitcast_convert_type(best, jnp.float32)


def mass_of(prior: chex.Array) -> chex.Array:
    """float32 [B]: the sum of prior [K, B] without the -1s."""
    return jnp.sum(jnp.maximum(prior, 0), axis=0)
