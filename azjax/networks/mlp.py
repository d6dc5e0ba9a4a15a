"""A perceptron with two heads, for small games."""

import dataclasses
import math

import jax
from flax import nnx
from jaxtyping import Array, Float32

from azjax.networks.layers import PolicyValueHeads, compute_dtype, linear
from azjax.networks.network import NetworkOutput, NnxNetwork


@dataclasses.dataclass(frozen=True)
class Mlp(NnxNetwork):
    """`depth` hidden layers of `width` ReLU units on the flat observation."""

    width: int = 128
    depth: int = 2
    precision: str = "float32"

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        return _MlpModule(self, rngs)


class _MlpModule(PolicyValueHeads):
    def __init__(self, config: Mlp, rngs: nnx.Rngs):
        dtype = compute_dtype(config.precision)
        super().__init__(config.width, config.width, config.num_actions, dtype, rngs)
        self.depth = config.depth
        sizes = [math.prod(config.observation_shape), *[config.width] * config.depth]
        for layer in range(config.depth):
            setattr(self, f"hidden_{layer}", linear(sizes[layer], sizes[layer + 1], dtype, rngs))

    def __call__(self, observations: Float32[Array, "B *observation"], train: bool) -> NetworkOutput:
        del train
        features = observations.reshape(len(observations), -1)
        for layer in range(self.depth):
            features = jax.nn.relu(getattr(self, f"hidden_{layer}")(features))
        return self.heads(features, features)
