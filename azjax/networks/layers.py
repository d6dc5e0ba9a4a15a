"""Modules that the networks share: linear layers, normalized convolutions, and the last layers of both heads.

Axis letters: `B` batch, `R` rows, `C` columns, `F` features or channels, `A` actions.
"""

from typing import Any, TypeAlias

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Float32

from azjax.core.errors import InputError
from azjax.networks.network import NetworkOutput
from azjax.networks.products import mixed_product, same_convolution

Dtype: TypeAlias = Any
"""`jnp.float32` or `jnp.bfloat16`."""

_COMPUTE_DTYPES: dict[str, Dtype] = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def compute_dtype(precision: str) -> Dtype:
    """The dtype of products. Parameters, batch statistics and the value's last layer are float32 in each.

    Raises:
      InputError: an unknown precision (the message lists the allowed ones).
    """
    if precision not in _COMPUTE_DTYPES:
        raise InputError(f"unknown precision {precision!r}; available: {', '.join(_COMPUTE_DTYPES)}")
    return _COMPUTE_DTYPES[precision]


def linear(features_in: int, features_out: int, dtype: Dtype, rngs: nnx.Rngs, use_bias: bool = True) -> nnx.Linear:
    """A linear layer, [B, features_in] to float32 [B, features_out]; in bfloat16 by `mixed_product`."""
    options: dict[str, Any] = {} if dtype == jnp.float32 else {"dot_general": _mixed_product}
    return nnx.Linear(features_in, features_out, use_bias=use_bias, dtype=jnp.float32, rngs=rngs, **options)


# Flax also passes options of the two products, which all have their defaults here.


def _mixed_product(features: Array, kernel: Array, *_: Any, **__: Any) -> Array:
    return mixed_product(features, kernel)


def _same_convolution(planes: Array, kernel: Array, *_: Any, **__: Any) -> Array:
    return same_convolution(planes, kernel)


class NormedConv(nnx.Module):
    """A convolution without bias, then batch normalization: [B, R, C, planes_in] to [B, R, C, planes_out]."""

    def __init__(self, planes_in: int, planes_out: int, size: int, dtype: Dtype, rngs: nnx.Rngs):
        self.conv = nnx.Conv(
            planes_in,
            planes_out,
            (size, size),
            use_bias=False,
            dtype=dtype,
            conv_general_dilated=_same_convolution,
            rngs=rngs,
        )
        # Without a dtype it computes in that of its statistics, float32.
        self.norm = nnx.BatchNorm(planes_out, momentum=0.9, rngs=rngs)
        self.dtype = dtype

    def __call__(self, planes: Float[Array, "B R C _"], train: bool) -> Float[Array, "B R C F"]:
        normed: Array = self.norm(self.conv(planes), use_running_average=not train)
        return normed.astype(self.dtype)


class PolicyValueHeads(nnx.Module):
    """Base class of modules: the last layers of both heads, on flat features of any precision."""

    def __init__(self, policy_features: int, value_features: int, num_actions: int, dtype: Dtype, rngs: nnx.Rngs):
        self.policy = linear(policy_features, num_actions, dtype, rngs)
        self.value = linear(value_features, 1, jnp.float32, rngs)

    def heads(self, policy_features: Float[Array, "B _"], value_features: Float32[Array, "B _"]) -> NetworkOutput:
        """The prior logits and the value."""
        return NetworkOutput(self.policy(policy_features), jnp.tanh(self.value(value_features)[:, 0]))
