"""The residual network of AlphaGo Zero (Silver et al. 2017, Methods, "Neural network architecture"), small.

Axis letters: `B` batch, `R` rows, `C` columns, `F` channels.
"""

import dataclasses
import math

import jax
from flax import nnx
from jaxtyping import Array, Float32

from azjax.networks.layers import NormedConv, PolicyValueHeads, check_board, compute_dtype, linear
from azjax.networks.network import NetworkOutput, NnxNetwork

_POLICY_PLANES = 2
_VALUE_PLANES = 1


@dataclasses.dataclass(frozen=True)
class Resnet(NnxNetwork):
    """`depth` residual blocks of two 3x3 convolutions of `width` channels, on boards `(rows, columns, planes)`."""

    width: int = 64
    depth: int = 4
    precision: str = "float32"

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        check_board("resnet", self.observation_shape)
        return _ResnetModule(self, rngs)


class _ResnetModule(PolicyValueHeads):
    def __init__(self, config: Resnet, rngs: nnx.Rngs):
        width, squares = config.width, math.prod(config.observation_shape[:2])
        dtype = compute_dtype(config.precision)
        super().__init__(_POLICY_PLANES * squares, width, config.num_actions, dtype, rngs)
        self.depth = config.depth
        self.stem = NormedConv(config.observation_shape[2], width, 3, dtype, rngs)
        for block in range(config.depth):
            setattr(self, f"block_{block}_first", NormedConv(width, width, 3, dtype, rngs))
            setattr(self, f"block_{block}_second", NormedConv(width, width, 3, dtype, rngs))
        self.policy_conv = NormedConv(width, _POLICY_PLANES, 1, dtype, rngs)
        self.value_conv = NormedConv(width, _VALUE_PLANES, 1, dtype, rngs)
        self.value_hidden = linear(_VALUE_PLANES * squares, width, dtype, rngs)

    def __call__(self, observations: Float32[Array, "B R C F"], train: bool) -> NetworkOutput:
        planes = jax.nn.relu(self.stem(observations, train))
        for block in range(self.depth):
            inner = jax.nn.relu(getattr(self, f"block_{block}_first")(planes, train))
            planes = jax.nn.relu(planes + getattr(self, f"block_{block}_second")(inner, train))
        batch = len(observations)
        policy = jax.nn.relu(self.policy_conv(planes, train)).reshape(batch, -1)
        value = jax.nn.relu(self.value_conv(planes, train)).reshape(batch, -1)
        return self.heads(policy, jax.nn.relu(self.value_hidden(value)))
