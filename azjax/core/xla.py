"""What XLA's CPU backend needs to be fast: values that are computed once, and batches as the last axis."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

_T = TypeVar("_T")
_R = TypeVar("_R")
_Leaves: TypeAlias = tuple[Array, ...]


def materialize(values: _T) -> _T:
    """Returns `values`, a pytree of arrays whose first leaf holds integers or bools, as a barrier to fusion.

    XLA's CPU backend fuses a producer into each of its consumers, so that rules with many results compute every
    intermediate value once for each result. There this function keeps the values before it from being fused with
    what follows; on other backends it is an optimization barrier.
    """
    leaves, tree = jax.tree.flatten(values)
    materialized: _T = jax.tree.unflatten(tree, _materialize_leaves(*leaves))
    return materialized


@jax.custom_batching.custom_vmap
def _materialize_leaves(*leaves: Any) -> Any:
    return _barrier(leaves)


@_materialize_leaves.def_vmap
def _materialize_batch(axis_size: int, in_batched: list[bool], *leaves: Any) -> tuple[Any, Any]:
    del axis_size
    return _materialize_leaves(*leaves), tuple(in_batched)


def materialize_result(function: Callable[[_T], _R], operand: _T, node: Int32[Array, ""]) -> _R:
    """Returns `function(operand)`, with both `operand` and the result kept from fusion; see `materialize`.

    Args:
      function: of a pytree of arrays to a pytree of arrays.
      operand: what `function` reads; computed once and laid out as it stands.
      node: the number of the node that a simulation makes. It is never the root's, which the compiler does not know:
        a branch on it costs less than one on the operand.
    """

    def branch(operand: _T) -> _R:
        def zeros(operand: _T) -> _R:
            shapes = jax.eval_shape(function, operand)
            return cast(_R, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))

        return cast(_R, jax.lax.cond(node > 0, function, zeros, operand))

    def barrier(operand: _T) -> _R:
        return function(jax.lax.optimization_barrier(operand))

    return cast(_R, jax.lax.platform_dependent(operand, cpu=branch, default=barrier))


def batch_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """Transforms a function so that `vmap` adds its batch axis behind the others.

    XLA's CPU backend vectorizes over the last axis; the axes of one state are short.

    Args:
      function: takes arrays of one shape S, `()` for a single state, and returns arrays `[..., *S]`.

    Returns:
      a function of the same arrays that returns arrays `[*S, ...]`.
    """

    @jax.custom_batching.custom_vmap
    def batched(*arguments: Any) -> Any:
        axes = jax.tree.leaves(arguments)[0].ndim

        def batch_first(result: Array) -> Array:
            return jnp.moveaxis(result, range(result.ndim - axes, result.ndim), range(axes))

        return jax.tree.map(batch_first, function(*arguments))

    @batched.def_vmap
    def in_batch(axis_size: int, in_batched: Any, *arguments: Any) -> tuple[Any, Any]:
        arguments = jax.tree.map(
            lambda batched, leaf: leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape)),
            tuple(in_batched),
            arguments,
        )
        results = batched(*arguments)
        return results, jax.tree.map(lambda result: True, results)

    return batched


# Module-level functions, so that calls outside of jit compile once.


@jax.jit
def _barrier(leaves: _Leaves) -> _Leaves:
    barred: _Leaves = jax.lax.platform_dependent(leaves, cpu=_behind_a_branch, default=jax.lax.optimization_barrier)
    return barred


def _behind_a_branch(leaves: _Leaves) -> _Leaves:
    # Nothing is fused through a branch. The condition is always true, but the compiler does not know.
    always = (leaves[0][(0,) * leaves[0].ndim].astype(jnp.int32) & 1) >= 0
    unchanged: _Leaves = jax.lax.cond(always, _identity, _zeros_like, leaves)
    return unchanged


def _identity(leaves: _Leaves) -> _Leaves:
    return leaves


def _zeros_like(leaves: _Leaves) -> _Leaves:
    return tuple(jnp.zeros_like(leaf) for leaf in leaves)
