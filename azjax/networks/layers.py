"""Modules that the networks share: linear layers, convolutions, global pooling, and the last layers of both heads.

Axis letters: `B` batch, `R` rows, `C` columns, `F` features or channels, `A` actions.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
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


def squared_relu(features: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The square of the ReLU (So et al. 2021, "Primer: Searching for Efficient Transformers", section 3)."""
    positive = jax.nn.relu(features)
    return positive * positive


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "squared_relu": squared_relu}


def activation_function(activation: str) -> Callable[[Array], Array]:
    """The function of that name.

    Raises:
      InputError: an unknown name (the message lists the allowed ones).
    """
    if activation not in _ACTIVATIONS:
        raise InputError(f"unknown activation {activation!r}; available: {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[activation]


def check_board(network: object, observation_shape: tuple[int, ...]) -> None:
    """Checks that observations are boards.

    Raises:
      InputError: another shape than `(rows, columns, planes)`.
    """
    if len(observation_shape) != 3:
        raise InputError(
            f"{network} needs observations (rows, columns, planes), got shape {observation_shape}; --network mlp takes "
            "any shape"
        )


def linear(
    features_in: int, features_out: int, dtype: Dtype, rngs: nnx.Rngs, use_bias: bool = True, scale: float = 1
) -> nnx.Linear:
    """A linear layer, [B, features_in] to float32 [B, features_out]; in bfloat16 by `mixed_product`.

    Its first weights have the standard deviation `scale / sqrt(features_in)`.
    """
    options: dict[str, Any] = {} if dtype == jnp.float32 else {"dot_general": _mixed_product}
    options["kernel_init"] = nnx.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")
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


def global_pool(planes: Float[Array, "B R C F"]) -> Float[Array, "B 2*F"]:
    """Mean and maximum of each channel over the board (Wu 2019, section 3.3)."""
    squares = planes.reshape(len(planes), -1, planes.shape[-1])
    return jnp.concatenate([squares.mean(axis=1), _maximum(squares)], axis=-1)


@jax.custom_jvp
def _maximum(squares: Float[Array, "B S F"]) -> Float[Array, "B F"]:
    """The maximum over the squares, whose gradient goes to the first square that has it."""
    return jnp.max(squares, axis=1)


@_maximum.defjvp
def _maximum_jvp(squares: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # The derived gradient compares with the maximum again: 0 / 0 if the squares are recomputed and round otherwise.
    is_top = jnp.arange(squares[0].shape[1])[None, :, None] == jnp.argmax(squares[0], axis=1, keepdims=True)
    first, tangent = (jnp.sum(jnp.where(is_top, each, 0), axis=1) for each in (squares[0], tangents[0]))
    return first, tangent


class GlobalPoolingConv(nnx.Module):
    """A convolution some of whose channels, pooled over the board, bias the others (Wu 2019, section 3.3).

    [B, R, C, planes_in] to [B, R, C, planes_out], after a ReLU; `pooled` further channels are pooled and dropped.
    """

    def __init__(self, planes_in: int, planes_out: int, pooled: int, size: int, dtype: Dtype, rngs: nnx.Rngs):
        self.pooled = pooled
        self.conv = NormedConv(planes_in, pooled + planes_out, size, dtype, rngs)
        # The normalization before it has a bias.
        self.pooled_bias = linear(2 * pooled, planes_out, dtype, rngs, use_bias=False)

    def __call__(self, planes: Float[Array, "B R C _"], train: bool) -> Float[Array, "B R C F"]:
        planes = self.conv(planes, train)
        pooled, planes = planes[..., : self.pooled], planes[..., self.pooled :]
        bias = self.pooled_bias(global_pool(jax.nn.relu(pooled)))
        return jax.nn.relu(planes + bias[:, None, None].astype(planes.dtype))


class PolicyValueHeads(nnx.Module):
    """Base class of modules: the last layers of both heads, on flat features of any precision."""

    def __init__(self, policy_features: int, value_features: int, num_actions: int, dtype: Dtype, rngs: nnx.Rngs):
        self.policy = linear(policy_features, num_actions, dtype, rngs)
        self.value = linear(value_features, 1, jnp.float32, rngs)

    def heads(self, policy_features: Float[Array, "B _"], value_features: Float32[Array, "B _"]) -> NetworkOutput:
        """The prior logits and the value."""
        return NetworkOutput(self.policy(policy_features), jnp.tanh(self.value(value_features)[:, 0]))
