"""The residual network of AlphaGo Zero (Silver et al. 2017, Methods, "Neural network architecture"), small."""

import dataclasses
import math

import chex
import jax
from flax import nnx

from azjax.core.errors import InputError
from azjax.networks.layers import NormedConv, PolicyValueHeads, compute_dtype, linear
from azjax.networks.network import Network

_POLICY_PLANES = 2
_VALUE_PLANES = 1


@dataclasses.dataclass(frozen=True)
class Resnet(Network):
    """`depth` residual blocks of two 3x3 convolutions of `width` channels, on boards `(rows, columns, planes)`."""

    width: int = 64
    depth: int = 4
    precision: str = "float32"

    def module(self, observation_shape: tuple[int, ...], num_actions: int, rngs: nnx.Rngs) -> nnx.Module:
        if len(observation_shape) != 3:
            raise InputError(f"resnet needs observations (rows, columns, planes), got shape {observation_shape}")
        return _ResnetModule(self, observation_shape, num_actions, rngs)


class _ResnetModule(PolicyValueHeads):
    def __init__(self, config: Resnet, observation_shape: tuple[int, ...], num_actions: int, rngs: nnx.Rngs):
        squares = math.prod(observation_shape[:2])
        dtype = compute_dtype(config.precision)
        super().__init__(_POLICY_PLANES * squares, config.width, num_actions, dtype, rngs)
        self.depth = config.depth
        self.stem = NormedConv(observation_shape[2], config.width, 3, dtype, rngs)
        for block in range(config.depth):
            setattr(self, f"block_{block}_first", NormedConv(config.width, config.width, 3, dtype, rngs))
            setattr(self, f"block_{block}_second", NormedConv(config.width, config.width, 3, dtype, rngs))
        self.policy_conv = NormedConv(config.width, _POLICY_PLANES, 1, dtype, rngs)
        self.value_conv = NormedConv(config.width, _VALUE_PLANES, 1, dtype, rngs)
        self.value_hidden = linear(_VALUE_PLANES * squares, config.width, dtype, rngs)

    def __call__(self, observations: chex.Array, train: bool) -> tuple[chex.Array, chex.Array]:
        planes = jax.nn.relu(self.stem(observations, train))
        for block in range(self.depth):
            inner = jax.nn.relu(getattr(self, f"block_{block}_first")(planes, train))
            planes = jax.nn.relu(planes + getattr(self, f"block_{block}_second")(inner, train))
        batch = len(observations)
        policy = jax.nn.relu(self.policy_conv(planes, train)).reshape(batch, -1)
        value = jax.nn.relu(self.value_conv(planes, train)).reshape(batch, -1)
        return self.heads(policy, jax.nn.relu(self.value_hidden(value)))
