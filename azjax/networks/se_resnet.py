"""A residual network in which every block and both heads see the whole board. It combines, in a small form:

- squeeze-and-excitation (Hu et al. 2018, "Squeeze-and-Excitation Networks", sections 3.1 and 3.2), with a bias beside
  the scale as in Leela Chess Zero;
- global pooling (Wu 2019, "Accelerating Self-Play Learning in Go", section 3.3), of the mean and the maximum. Wu's
  scaling of the mean by the board's size is left out, since a game has one size.

Axis letters: `B` batch, `R` rows, `C` columns, `F` channels.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Float32

from azjax.core.errors import InputError
from azjax.networks.layers import (
    Dtype,
    GlobalPoolingConv,
    NormedConv,
    PolicyValueHeads,
    check_board,
    compute_dtype,
    global_pool,
    linear,
)
from azjax.networks.network import NetworkOutput, NnxNetwork

_POLICY_PLANES = 2


@dataclasses.dataclass(frozen=True)
class SeResnet(NnxNetwork):
    """`depth` residual blocks of `width` channels, a quarter of them pooled, on boards `(rows, columns, planes)`.

    Raises:
      InputError: a width below 2, which leaves no channel beside the pooled one.
    """

    width: int = 64
    depth: int = 4
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.width < 2:
            raise InputError(f"se_resnet needs a width of at least 2, got {self.width}")

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        check_board("se_resnet", self.observation_shape)
        return _SeResnetModule(self, rngs)


class SqueezeExcitation(nnx.Module):
    """Scale (0 to 1) and bias of each channel, from the means of all over the board (Hu et al. 2018, section 3).

    `squeezed` is the width of the hidden layer.
    """

    def __init__(self, planes: int, squeezed: int, dtype: Dtype, rngs: nnx.Rngs):
        self.squeeze = linear(planes, squeezed, dtype, rngs)
        self.excite = linear(squeezed, 2 * planes, dtype, rngs)

    def __call__(self, planes: Float[Array, "B R C F"]) -> Float[Array, "B R C F"]:
        excitation = self.excite(jax.nn.relu(self.squeeze(planes.mean(axis=(1, 2))))).astype(planes.dtype)
        scale, bias = jnp.split(excitation[:, None, None], 2, axis=-1)
        return jax.nn.sigmoid(scale) * planes + bias


class _Block(nnx.Module):
    """Two 3x3 convolutions, the first with global pooling, then squeeze-and-excitation, then the sum."""

    def __init__(self, width: int, quarter: int, dtype: Dtype, rngs: nnx.Rngs):
        self.first = GlobalPoolingConv(width, width - quarter, quarter, 3, dtype, rngs)
        self.second = NormedConv(width - quarter, width, 3, dtype, rngs)
        self.excitation = SqueezeExcitation(width, quarter, dtype, rngs)

    def __call__(self, planes: Float[Array, "B R C F"], train: bool) -> Float[Array, "B R C F"]:
        inner = self.second(self.first(planes, train), train)
        return jax.nn.relu(planes + self.excitation(inner))


class _SeResnetModule(PolicyValueHeads):
    def __init__(self, config: SeResnet, rngs: nnx.Rngs):
        squares = math.prod(config.observation_shape[:2])
        dtype = compute_dtype(config.precision)
        super().__init__(_POLICY_PLANES * squares, config.width, config.num_actions, dtype, rngs)
        self.depth = config.depth
        width, quarter = config.width, max(1, config.width // 4)
        self.stem = NormedConv(config.observation_shape[2], width, 3, dtype, rngs)
        for block in range(config.depth):
            setattr(self, f"block_{block}", _Block(width, quarter, dtype, rngs))
        self.policy_conv = GlobalPoolingConv(width, _POLICY_PLANES, quarter, 1, dtype, rngs)
        self.value_conv = NormedConv(width, quarter, 1, dtype, rngs)
        self.value_hidden = linear(2 * quarter, width, dtype, rngs)

    def __call__(self, observations: Float32[Array, "B R C F"], train: bool) -> NetworkOutput:
        planes = jax.nn.relu(self.stem(observations, train))
        for block in range(self.depth):
            planes = getattr(self, f"block_{block}")(planes, train)
        policy = self.policy_conv(planes, train).reshape(len(observations), -1)
        value = global_pool(jax.nn.relu(self.value_conv(planes, train)))
        return self.heads(policy, jax.nn.relu(self.value_hidden(value)))
