"""What the networks' modules share: the precision, linear layers, the convolution, and the last layers of both heads.

Axis letters: `B` batch, `R` rows, `C` columns, `F` features or channels, `A` actions.
"""

from typing import Any

import chex
import jax.numpy as jnp
from flax import nnx

from azjax.core.errors import InputError
from azjax.networks.convolution import same_convolution
from azjax.networks.product import mixed_product

_COMPUTE_DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def compute_dtype(precision: str) -> Any:
    """The dtype of products. Parameters, batch statistics and the value's last layer are float32 in each.

    Raises:
      ValueError: an unknown precision (the message lists the allowed ones).
    """
    if precision not in _COMPUTE_DTYPES:
        raise InputError(f"unknown precision {precision!r}; available: {', '.join(_COMPUTE_DTYPES)}")
    return _COMPUTE_DTYPES[precision]


def linear(features_in: int, features_out: int, dtype: Any, rngs: nnx.Rngs, use_bias: bool = True) -> nnx.Linear:
    """A linear layer, [B, features_in] to float32 [B, features_out]; in bfloat16 by `mixed_product`."""
    options: dict[str, Any] = {} if dtype == jnp.float32 else {"dot_general": _mixed}
    return nnx.Linear(features_in, features_out, use_bias=use_bias, dtype=jnp.float32, rngs=rngs, **options)


def _mixed(features: chex.Array, kernel: chex.Array, *_: Any, **__: Any) -> chex.Array:
    """Flax's product, whose options are their defaults above."""
    return mixed_product(features, kernel)


class NormedConv(nnx.Module):
    """Convolution without a bias, then batch normalisation: [B, R, C, planes_in] to [B, R, C, planes_out]."""

    def __init__(self, planes_in: int, planes_out: int, size: int, dtype: Any, rngs: nnx.Rngs):
        self.conv = nnx.Conv(
            planes_in,
            planes_out,
            (size, size),
            use_bias=False,
            dtype=dtype,
            conv_general_dilated=_without_options,
            rngs=rngs,
        )
        # Without a dtype of its own it computes in that of its statistics, float32.
        self.norm = nnx.BatchNorm(planes_out, momentum=0.9, rngs=rngs)
        self.dtype = dtype

    def __call__(self, planes: chex.Array, train: bool) -> chex.Array:
        return self.norm(self.conv(planes), use_running_average=not train).astype(self.dtype)


def _without_options(planes: chex.Array, kernel: chex.Array, *_: Any, **__: Any) -> chex.Array:
    """Flax's convolution, whose other options are their defaults above."""
    return same_convolution(planes, kernel)


class PolicyValueHeads(nnx.Module):
    """Base of the modules: the last layers of both heads, on flat features [B, F] of any precision."""

    def __init__(self, policy_features: int, value_features: int, num_actions: int, dtype: Any, rngs: nnx.Rngs):
        self.policy = linear(policy_features, num_actions, dtype, rngs)
        self.value = linear(value_features, 1, jnp.float32, rngs)

    def heads(self, policy_features: chex.Array, value_features: chex.Array) -> tuple[chex.Array, chex.Array]:
        """Prior logits, float32 [B, A], and value, float32 [B]."""
        return self.policy(policy_features), jnp.tanh(self.value(value_features)[:, 0])
