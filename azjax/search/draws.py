"""What a search draws at random. The draws of a state depend on its own key alone, not on the states beside it.

So a batch may be split over devices, and each row draws what it draws in the whole batch. Axis letters: see `tree.py`.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

_TINY = float(np.finfo(np.float32).tiny)


def keys_of_states(key: chex.PRNGKey, batch: int, num: int) -> chex.Array:
    """[num, B]: keys to consume, of `key` [] that is split for the states, or of their own keys [B]."""
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)  # of `jax.random.PRNGKey`
    own = jax.random.split(key, batch) if key.ndim == 0 else key
    chex.assert_shape(own, (batch,))
    return jax.vmap(lambda key: jax.random.split(key, num), out_axes=1)(own)


def add_dirichlet_noise(
    keys: chex.PRNGKey, prior: chex.Array, fraction: chex.Numeric, alpha: chex.Numeric | None
) -> chex.Array:
    """Mixes noise, of keys [B], into a prior [B, K] over its legal slots alone; holes stay -1.

    `fraction` and `alpha` are [] or [B].
    """
    valid = prior >= 0
    num_legal = jnp.sum(valid, axis=1, keepdims=True)
    fraction = _column(fraction)
    concentration = 10.0 / jnp.maximum(num_legal, 1) if alpha is None else _column(alpha)
    # In logarithms: draws at a small alpha underflow.
    draws = log_gamma_draws(keys, jnp.broadcast_to(concentration, prior.shape))
    noise = jax.nn.softmax(jnp.where(valid, draws, -jnp.inf), axis=1)
    return jnp.where(valid, (1 - fraction) * prior + fraction * noise, prior)


def _column(number: chex.Numeric) -> chex.Array:
    """float32 [1, 1] or [B, 1], of a number [] or [B]: for all states, or for each."""
    return jnp.asarray(number, jnp.float32).reshape(-1, 1)


def log_gamma_draws(keys: chex.PRNGKey, alpha: chex.Array) -> chex.Array:
    """float32 [B, K]: logarithms of gamma variates of shapes `alpha` [B, K], above 0; of keys [B].

    Marsaglia and Tsang 2000, with all proposals drawn at once: each of the four is taken with a probability of 0.95 or
    more, and the last one in any case. `jax.random.loggamma` loops in each element; it took a third of a search's time
    at 96 slots, and more than a second to compile.
    """
    (batch, size), proposals = alpha.shape, 4

    def draw(key: chex.PRNGKey) -> tuple[chex.Array, chex.Array]:
        normal_key, uniform_key = jax.random.split(key)
        # One axis: XLA compiles a draw of two for a second.
        normal = jax.random.normal(normal_key, (proposals * size,))
        return normal, jax.random.uniform(uniform_key, ((proposals + 1) * size,), minval=_TINY)

    normal, uniform = (draws.reshape(batch, -1, size) for draws in jax.vmap(draw)(keys))
    log_uniform = jnp.log(uniform)
    # Of shape alpha + 1, since the method needs 1 or more.
    d = alpha + 2 / 3
    root = 1 + normal * jax.lax.rsqrt(9 * d)[:, None]
    log_v = 3 * jnp.log(jnp.where(root > 0, root, 1.0))
    below = normal**2 / 2 + d[:, None] * (1 - jnp.exp(log_v) + log_v)
    taken = (root > 0) & (log_uniform[:, :proposals] < below)
    chosen = log_v[:, -1]
    for proposal in reversed(range(proposals - 1)):
        chosen = jnp.where(taken[:, proposal], log_v[:, proposal], chosen)
    return jnp.log(d) + chosen + log_uniform[:, -1] / alpha


def gumbel_noise(keys: chex.PRNGKey, num_slots: int, scale: chex.Numeric) -> chex.Array:
    """float32 [B, K]: standard Gumbel draws of keys [B], times `scale`, [] or [B]."""
    draws = jax.vmap(lambda key: jax.random.gumbel(key, (num_slots,), jnp.float32))(keys)
    return jnp.broadcast_to(jnp.asarray(scale, jnp.float32), len(draws))[:, None] * draws


def sample_by_visits(
    keys: chex.PRNGKey, visits: chex.Array, valid: chex.Array, temperature: chex.Numeric
) -> chex.Array:
    """int32 [B]: a slot drawn from visits^(1 / temperature), of keys [B]; `visits` and `valid` are [B, K]."""
    temperature = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), visits.shape[:1])
    # Relative to the most visited, so that no power overflows; 0 ** 0 is 1, which infinity needs.
    share = visits / jnp.maximum(jnp.max(visits, axis=1, keepdims=True), 1)
    weights = jnp.where(valid, share ** (1 / temperature)[:, None], 0.0)
    # By the cumulative sum: `jax.random.categorical` takes most of a second to compile.
    up_to = jnp.cumsum(weights, axis=1)
    total = up_to[:, -1:]
    draw = jnp.minimum(jax.vmap(jax.random.uniform)(keys)[:, None] * total, jnp.nextafter(total, 0.0))
    drawn = jnp.minimum(jnp.sum(up_to <= draw, axis=1), visits.shape[1] - 1)
    return jnp.where(temperature == 0, jnp.argmax(visits, axis=1), drawn).astype(jnp.int32)
