"""The function that an export writes: observations to the outputs of a network, for any number of positions."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from azjax.networks import Network, Variables

Evaluate = Callable[[Float32[Array, "B *observation"]], dict[str, Array]]
"""Observations to the outputs by name, each with leading axis B."""


def in_float32(network: Network) -> Network:
    """The network with `precision` float32, if it has that field; the same variables fit it."""
    if dataclasses.is_dataclass(network) and not isinstance(network, type) and hasattr(network, "precision"):
        replaced: Any = dataclasses.replace(network, precision="float32")
        return replaced
    return network


def evaluation(network: Network, variables: Variables) -> Evaluate:
    """The outputs of a network, with its variables as constants."""
    constants = jax.tree.map(jnp.asarray, variables)  # which traced numbers may index

    def evaluate_one(observation: Float32[Array, "*observation"]) -> dict[str, Array]:
        output, _ = network.apply(constants, observation[None], train=False)
        named = {"prior_logits": output.prior_logits, "value": output.value, **output.auxiliary}
        return {name: _as_float32(array[0]) for name, array in named.items()}

    # One position at a time under `vmap`: the network sees a batch of fixed size, as some networks need
    # (`len(observations)`), and the size of the outer batch may stay open.
    return jax.vmap(evaluate_one)


def _as_float32(array: Array) -> Array:
    """Auxiliary outputs may have other types; whole numbers keep theirs."""
    return array.astype(jnp.float32) if jnp.issubdtype(array.dtype, jnp.floating) else array


def open_batch(observation_shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """The shape of observations of a batch whose size is open."""
    (batch,) = jax.export.symbolic_shape("batch")
    return jax.ShapeDtypeStruct((batch, *observation_shape), np.float32)
