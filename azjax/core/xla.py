"""What XLA's CPU backend needs to be fast. Other backends get the plain functions, and no result changes.

One kernel for many operations, values that are computed once, and batches as the last axis.
"""

import contextvars
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr_consts
from jaxtyping import Array

_T = TypeVar("_T")
_R = TypeVar("_R")
_P = ParamSpec("_P")

# Attributes of a call in XLA. A call that is not inlined is a border that no fusion crosses. XLA's CPU backend compiles
# a "small call" as one function; it sets this attribute itself on small loops (its small-while-loop hoisting pass).
_BORDER = {"inlineable": "false"}
_ONE_KERNEL = {**_BORDER, "xla_cpu_small_call": "true"}

# The attributes are not documented: versions of JAX with which they were not tried get the plain functions.
_IS_TRIED = jax.__version_info__[:2] in ((0, 10), (0, 11))
_LARGEST_ONE_KERNEL = 1 << 15

_within_a_kernel = contextvars.ContextVar("within_a_kernel", default=False)


def materialize(values: _T) -> _T:
    """Returns `values`, a pytree of arrays, computed once and stored: nothing before is fused with what follows.

    XLA's CPU backend fuses a producer into each of its consumers, so that a function with many results computes every
    intermediate value once for each result.
    """
    leaves, tree = jax.tree.flatten(values)
    if not leaves:
        return values
    stored: _T = jax.tree.unflatten(tree, _store(*leaves))
    return stored


@jax.custom_batching.custom_vmap
def _store(*leaves: Any) -> Any:
    return jax.lax.platform_dependent(*leaves, cpu=_border, default=_barrier)


@_store.def_vmap
def _store_batch(axis_size: int, in_batched: list[bool], *leaves: Any) -> tuple[Any, Any]:
    del axis_size
    return _store(*leaves), tuple(in_batched)


def one_kernel(function: Callable[_P, _R], size: int = 0) -> Callable[_P, _R]:
    """Compiles `function`, from pytrees of arrays to a pytree of arrays, as one kernel on CPU.

    There a loop of many small kernels takes longer to call them, half a microsecond each, than to compute. The one
    kernel runs on one thread. A function with an operation that XLA cannot compile so, such as a matrix product, a
    sort or a scatter, and a function under `vmap` stay as they are. In the first case the parts of the function that
    are themselves in `one_kernel` become one kernel each.

    Args:
      function: see above.
      size: of its largest intermediate arrays, in numbers. Above 2^15 XLA's own kernels, which use all threads, take
        less time, and the function stays as it is.
    """
    if not _IS_TRIED or size > _LARGEST_ONE_KERNEL:
        return function

    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        if _within_a_kernel.get():
            return function(*arguments, **keywords)
        leaves, tree = jax.tree.flatten((arguments, keywords))

        def flat(*leaves: Any) -> Any:
            arguments, keywords = jax.tree.unflatten(tree, leaves)
            return function(*arguments, **keywords)

        token = _within_a_kernel.set(True)
        try:
            closed, shapes = jax.make_jaxpr(flat, return_shape=True)(*leaves)
        finally:
            _within_a_kernel.reset(token)
        jaxpr, reads_const, reads_leaf = dce_jaxpr_consts(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        operands = [leaf for leaf, is_read in zip(leaves, reads_leaf, strict=True) if is_read]
        consts = [const for const, is_read in zip(closed.consts, reads_const, strict=True) if is_read]
        compute = jaxpr_as_fun(ClosedJaxpr(jaxpr, consts))
        if not operands or not all(map(_fits_in_a_kernel, _equations(jaxpr))):
            return function(*arguments, **keywords)
        return cast(_R, jax.tree.unflatten(jax.tree.structure(shapes), _one_kernel_call(compute, operands)))

    return call


def _one_kernel_call(compute: Callable[..., Any], operands: list[Any]) -> Any:
    """`compute` of operands that it reads, all of them."""

    def kernel(*operands: Any) -> Any:
        return _border(*compute(*_border(*operands)))

    # XLA crashes on a small call with a parameter that nothing reads, as where it takes a constant into the call. It
    # fails where it would compute a lone result in parts. Borders hide constants, read operands, and return results.
    @jax.custom_batching.custom_vmap
    def on_cpu(*operands: Any) -> Any:
        return tuple(_tagged(jax.jit(kernel), _ONE_KERNEL)(*_border(*operands)))

    @on_cpu.def_vmap
    def in_batch(axis_size: int, in_batched: list[bool], *operands: Any) -> tuple[Any, Any]:
        axes = [0 if batched else None for batched in in_batched]
        outputs = tuple(jax.vmap(compute, in_axes=axes, axis_size=axis_size)(*operands))
        return outputs, tuple(True for _ in outputs)

    return jax.lax.platform_dependent(*operands, cpu=on_cpu, default=lambda *operands: tuple(compute(*operands)))


def _tagged(jitted: Callable[..., Any], attributes: dict[str, str]) -> Callable[..., Any]:
    def call(*leaves: Any) -> Any:
        # The attributes of a result are those of the call that returns it.
        first, *others = jitted(*leaves)
        return (set_xla_metadata(first, **attributes), *others)

    return call


# The primitives that fit in a kernel; XLA's "small-while-loop hoisting pass" lists what does not. Sums of floats do not
# either, since XLA may call a library for them.
_FITTING_PRIMITIVES = """
abs add and atan2 bitcast_convert_type broadcast_in_dim cbrt ceil clamp closed_call clz concatenate cond
convert_element_type copy cos custom_jvp_call custom_vjp_call custom_vmap_call div dynamic_slice dynamic_update_slice
eq erf exp exp2 expand_dims expm1 floor gather ge gt integer_pow iota is_finite jit le log log1p logistic lt max min
mul ne neg nextafter not optimization_barrier or pad pjit platform_index population_count pow random_bits
random_fold_in random_split random_unwrap random_wrap reduce_and reduce_or rem reshape rev round rsqrt scan select_n
shift_left shift_right shift_right_arithmetic shift_right_logical sign sin slice sqrt square squeeze stack
stop_gradient sub tanh threefry2x32 transpose while xla_metadata_value xor
"""
_FITTING = frozenset(_FITTING_PRIMITIVES.split())
_FITTING_OF_INTEGERS = frozenset({"reduce_max", "reduce_min", "reduce_sum"})


def _fits_in_a_kernel(equation: JaxprEqn) -> bool:
    name = equation.primitive.name
    reads_integers = all(jnp.issubdtype(jnp.result_type(operand.aval), jnp.integer) for operand in equation.invars)
    return name in _FITTING or (name in _FITTING_OF_INTEGERS and reads_integers)


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """All equations, and those within them, as they are compiled for CPU."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in _inner_jaxprs(equation):
            yield from _equations(inner)


def _inner_jaxprs(equation: JaxprEqn) -> list[Jaxpr]:
    params = equation.params
    platforms = params.get("branches_platforms")
    if platforms is not None:
        on_cpu = next(index for index, names in enumerate(platforms) if names is None or "cpu" in names)
        return [params["branches"][on_cpu].jaxpr]
    inner = []
    for leaf in jax.tree.leaves(params, is_leaf=lambda value: isinstance(value, ClosedJaxpr | Jaxpr)):
        if isinstance(leaf, ClosedJaxpr | Jaxpr):
            inner.append(leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf)
    return inner


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


# A module-level function, so that calls outside of jit compile once.


@jax.jit
def _identity(*leaves: Any) -> Any:
    return leaves


def _border(*leaves: Any) -> Any:
    return _tagged(_identity, _BORDER)(*leaves)


def _barrier(*leaves: Any) -> Any:
    return jax.lax.optimization_barrier(leaves)
