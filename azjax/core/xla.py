"""What XLA's CPU backend needs to compute rules fast: `materialize` and `batch_last`."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

_T = TypeVar("_T")


def materialize(values: _T) -> _T:
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


def batch_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, for which a batch is the last axis, not the first, under `vmap`.

    It takes arrays of one shape S, () for one state, and returns arrays [..., *S]. XLA's CPU backend makes vectors of
    the last axis, and the others of a game are small.

    Returns:
      a function of the same arrays that returns arrays [*S, ...].
    """

    @jax.custom_batching.custom_vmap
    def batched(*arguments: Any) -> Any:
        axes = jax.tree.leaves(arguments)[0].ndim

        def batch_first(result: Any) -> Any:
            return jnp.moveaxis(result, range(result.ndim - axes, result.ndim), range(axes))

        return jax.tree.map(batch_first, function(*arguments))

    @batched.def_vmap
    def in_batch(axis_size: int, in_batched: tuple, *arguments: Any) -> tuple[Any, Any]:
        arguments = jax.tree.map(
            lambda batched, leaf: leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape)),
            tuple(in_batched),
            arguments,
        )
        results = batched(*arguments)
        return results, jax.tree.map(lambda result: True, results)

    return batched


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
