"""The random draws of a search. The draws of a state depend on its own key alone, not on the rest of the batch.

So a batch may be split over devices, and each state draws the same as in the whole batch. Axis letters: see `tree.py`.
"""

from typing import TypeAlias

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float32, Int32, Key, Real, UInt32

from azjax.core.arrays import TINY

Keys: TypeAlias = Key[Array, ""] | Key[Array, "B"] | UInt32[Array, "2"]
"""One key, of `jax.random.key` or `jax.random.PRNGKey`, or one for each state."""

Number: TypeAlias = Real[ArrayLike, ""] | Real[ArrayLike, "B"]
"""An option of a search: one number, or one for each state."""


def keys_of_states(key: Keys, batch: int, num: int) -> Key[Array, "{num} B"]:
    """`num` keys for each state, split from its own key, or from its share of the one `key`."""
    key = _typed(key)
    own = jax.random.split(key, batch) if key.ndim == 0 else key
    chex.assert_shape(own, (batch,))
    return jax.vmap(lambda key: jax.random.split(key, num), out_axes=1)(own)


def first_key(key: Keys) -> Key[Array, ""]:
    """The one key, or that of the first state."""
    key = _typed(key)
    return key if key.ndim == 0 else key[0]


def fold_in(key: Keys, data: int) -> Key[Array, ""] | Key[Array, "B"]:
    """`jax.random.fold_in` of the one key, or of that of each state."""
    key = _typed(key)
    if key.ndim:
        return jax.vmap(jax.random.fold_in, (0, None))(key, data)
    return jax.random.fold_in(key, data)


def _typed(key: Keys) -> Key[Array, "..."]:
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)


def add_dirichlet_noise(
    keys: Key[Array, "B"], prior: Float32[Array, "B K"], fraction: Number, alpha: Number | None
) -> Float32[Array, "B K"]:
    """Mixes noise into `prior` over its legal slots alone; holes stay -1."""
    valid = prior >= 0
    num_legal = jnp.sum(valid, axis=1, keepdims=True)
    fraction = _column(fraction)
    concentration = 10.0 / jnp.maximum(num_legal, 1).astype(jnp.float32) if alpha is None else _column(alpha)
    # In logarithms: draws of a small alpha underflow.
    draws = log_gamma_draws(keys, jnp.broadcast_to(concentration, prior.shape))
    noise = jax.nn.softmax(jnp.where(valid, draws, -jnp.inf), axis=1)
    return jnp.where(valid, (1 - fraction) * prior + fraction * noise, prior)


def _column(number: Number) -> Float32[Array, "C 1"]:
    """[1, 1], or [B, 1] of a number for each state."""
    return jnp.asarray(number, jnp.float32).reshape(-1, 1)


def log_gamma_draws(keys: Key[Array, "B"], alpha: Float32[Array, "B K"]) -> Float32[Array, "B K"]:
    """Logarithms of gamma variates of the shapes `alpha`, above 0.

    Marsaglia and Tsang 2000, with all proposals drawn at once: each of four is accepted with a probability of at least
    0.95, and the last one always. `jax.random.loggamma` loops in each element: it took a third of the time of a search
    with 96 slots, and more than a second to compile.
    """
    (batch, size), proposals = alpha.shape, 4

    def draw(key: Key[Array, ""]) -> tuple[Float32[Array, "S"], Float32[Array, "U"]]:
        normal_key, uniform_key = jax.random.split(key)
        # One axis: XLA compiles a draw of two for a second.
        normal = jax.random.normal(normal_key, (proposals * size,), jnp.float32)
        return normal, jax.random.uniform(uniform_key, ((proposals + 1) * size,), jnp.float32, minval=TINY)

    normal, uniform = (draws.reshape(batch, -1, size) for draws in jax.vmap(draw)(keys))
    log_uniform = jnp.log(uniform)
    # For the shape alpha + 1, since the method needs 1 or more.
    d = alpha + 2 / 3
    root = 1 + normal * jax.lax.rsqrt(9 * d)[:, None]
    log_v = 3 * jnp.log(jnp.where(root > 0, root, 1.0))
    below = normal**2 / 2 + d[:, None] * (1 - jnp.exp(log_v) + log_v)
    accepted = (root > 0) & (log_uniform[:, :proposals] < below)
    chosen = log_v[:, -1]
    for proposal in reversed(range(proposals - 1)):
        chosen = jnp.where(accepted[:, proposal], log_v[:, proposal], chosen)
    return jnp.log(d) + chosen + log_uniform[:, -1] / alpha


def gumbel_noise(keys: Key[Array, "B"], num_slots: int, scale: Number) -> Float32[Array, "B K"]:
    """Standard Gumbel draws, times `scale`."""
    draws = jax.vmap(lambda key: jax.random.gumbel(key, (num_slots,), jnp.float32))(keys)
    return jnp.broadcast_to(jnp.asarray(scale, jnp.float32), len(draws))[:, None] * draws


def sample_by_visits(
    keys: Key[Array, "B"], visits: Real[Array, "B K"], valid: Bool[Array, "B K"], temperature: Number
) -> Int32[Array, "B"]:
    """A slot drawn from visits^(1 / temperature) over the valid ones; 0 takes the most visited."""
    temperature = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), visits.shape[:1])
    # Relative to the most visited, so that no power overflows; 0 ** 0 is 1, which infinity needs.
    most = jnp.max(visits, axis=1, keepdims=True)
    relative = visits / jnp.where(most > 0, most, 1)
    weights = jnp.where(valid, relative ** (1 / temperature)[:, None], 0.0)
    # By the cumulative sum: `jax.random.categorical` takes most of a second to compile.
    up_to = jnp.cumsum(weights, axis=1)
    total = up_to[:, -1:]
    share = jax.vmap(lambda key: jax.random.uniform(key, (1,), jnp.float32))(keys)
    draw = jnp.minimum(share * total, jnp.nextafter(total, 0.0))
    drawn = jnp.minimum(jnp.sum(up_to <= draw, axis=1), visits.shape[1] - 1)
    return jnp.where(temperature == 0, jnp.argmax(visits, axis=1), drawn).astype(jnp.int32)
