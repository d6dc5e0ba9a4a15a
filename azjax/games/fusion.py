"""`computed_once`: keeps XLA from computing a value again for each of its readers."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp

_T = TypeVar("_T")


def computed_once(values: _T) -> _T:
    """The same values, a pytree of arrays, the first leaf of integers or bools.

    XLA's CPU backend fuses a producer into each of its consumers, so that rules with many results compute every
    step of the way once a result. Nothing is fused through this function there; elsewhere it is a hint.
    """
    leaves, tree = jax.tree.flatten(values)
    return jax.tree.unflatten(tree, _computed_once(*leaves))


@jax.custom_batching.custom_vmap
def _computed_once(*leaves: Any) -> tuple:
    return _materialise(leaves)


@_computed_once.def_vmap
def _computed_once_in_batch(axis_size: int, in_batched: list[bool], *leaves: Any) -> tuple:
    del axis_size
    return _computed_once(*leaves), tuple(in_batched)


# Functions of the module, which calls outside of jit compile once.


@jax.jit
def _materialise(leaves: tuple) -> tuple:
    return jax.lax.platform_dependent(leaves, cpu=_behind_a_branch, default=jax.lax.optimization_barrier)


def _behind_a_branch(leaves: tuple) -> tuple:
    # Always true, which the compiler does not know; the other branch is there so that there is a branch.
    always = (leaves[0][(0,) * leaves[0].ndim].astype(jnp.int32) & 1) >= 0
    return jax.lax.cond(always, _as_they_are, _zeros_like, leaves)


def _as_they_are(leaves: tuple) -> tuple:
    return leaves


def _zeros_like(leaves: tuple) -> tuple:
    return tuple(jnp.zeros_like(leaf) for leaf in leaves)
