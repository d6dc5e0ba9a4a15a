"""A plain perceptron with two heads, for small games."""

import dataclasses
import math

import chex
import jax
from flax import nnx

from azjax.networks.layers import PolicyValueHeads, compute_dtype, linear
from azjax.networks.network import Network


@dataclasses.dataclass(frozen=True)
class Mlp(Network):
    """`depth` hidden layers of `width` ReLU units on the flat observation."""

    width: int = 128
    depth: int = 2
    precision: str = "float32"

    def module(self, observation_shape: tuple[int, ...], num_actions: int, rngs: nnx.Rngs) -> nnx.Module:
        return _MlpModule(self, observation_shape, num_actions, rngs)


class _MlpModule(PolicyValueHeads):
    def __init__(self, config: Mlp, observation_shape: tuple[int, ...], num_actions: int, rngs: nnx.Rngs):
        dtype = compute_dtype(config.precision)
        super().__init__(config.width, config.width, num_actions, dtype, rngs)
        self.depth = config.depth
        sizes = [math.prod(observation_shape), *[config.width] * config.depth]
        for layer in range(config.depth):
            setattr(self, f"hidden_{layer}", linear(sizes[layer], sizes[layer + 1], dtype, rngs))

    def __call__(self, observations: chex.Array, train: bool) -> tuple[chex.Array, chex.Array]:
        del train
        features = observations.reshape(len(observations), -1)
        for layer in range(self.depth):
            features = jax.nn.relu(getattr(self, f"hidden_{layer}")(features))
        return self.heads(features, features)
