"""A program of JAX as an ONNX graph: walks the jaxpr, computes what does not depend on the input, and writes the rest.

`onnx_primitives.py` holds the nodes of each primitive.
"""

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.extend import core as jax_core
from jaxtyping import Array

from azjax.core.errors import InputError

Value: TypeAlias = Any
"""The name of a value that the model computes (a string), or a constant (an array or a number)."""
Write: TypeAlias = Callable[["Graph", Any, list[Value]], list[str]]
"""Writes the nodes of an equation, given its inputs; returns its outputs' names."""

OPSET = 18
EMPTY = ""
"""The name of a value without entries, such as what `jnp.pad` adds to an axis that it leaves alone. It has no node."""
_IR_VERSION = 10  # of opset 21: a newer one would shut out runtimes that know all operators used here
_INLINED = {
    "checkpoint": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "remat2": "jaxpr",
}
"""Primitives that call another jaxpr, and the parameter that holds it."""


def to_onnx(
    function: Callable[[Array], dict[str, Array]],
    input_name: str,
    observations: jax.ShapeDtypeStruct,
    primitives: dict[str, Write],
) -> bytes:
    """An ONNX model of `function`, checked by the package onnx.

    Args:
      function: from an array to arrays by name.
      input_name: the name of the input in the model.
      observations: shape and dtype of the input; the first axis may be symbolic.
      primitives: what writes each primitive, by name.

    Raises:
      InputError: the function uses a primitive or a dtype that cannot be written.
    """
    onnx = importlib.import_module("onnx")
    closed = jax.make_jaxpr(function)(observations)
    names = list(jax.eval_shape(function, observations))
    graph = Graph(onnx, input_name, observations, primitives)
    outputs = graph.run(closed.jaxpr, closed.consts, [input_name])
    # `jax.tree` sorts the outputs of a dict by name.
    for name, value, aval in zip(sorted(names), outputs, closed.out_avals, strict=True):
        graph.nodes.append(onnx.helper.make_node("Identity", [graph.name_of(value)], [name]))
        graph.outputs.append(graph.value_info(name, aval))
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "azjax",
            [graph.value_info(input_name, observations)],
            graph.outputs,
            graph.initializers,
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="azjax",
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()  # type: ignore[no-any-return]


class Graph:
    """The nodes written so far.

    Args:
      onnx: the package.
      input_name: of the input.
      observations: its shape, whose first axis is the batch.
      primitives: see `to_onnx`.
    """

    def __init__(self, onnx: Any, input_name: str, observations: Any, primitives: dict[str, Write]):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.outputs: list[Any] = []
        self.initializers: list[Any] = []
        self._input, self._batch = input_name, observations.shape[0]
        self._primitives = primitives
        self._count = 0
        self._shapes: dict[tuple[Any, ...], str] = {}

    def run(self, jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """Writes a jaxpr; returns its outputs."""
        values: dict[Any, Value] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *inputs], strict=True))
        for equation in jaxpr.eqns:
            read = [atom.val if isinstance(atom, jax_core.Literal) else values[atom] for atom in equation.invars]
            values |= dict(zip(equation.outvars, self._equation(equation, read), strict=True))
        return [atom.val if isinstance(atom, jax_core.Literal) else values[atom] for atom in jaxpr.outvars]

    def _equation(self, equation: Any, read: list[Value]) -> Sequence[Value]:
        name = equation.primitive.name
        if name in _INLINED:
            inner = equation.params[_INLINED[name]]
            jaxpr, constants = (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, [])
            return self.run(jaxpr, constants, read)
        fixed = all(is_fixed(variable.aval.shape) for variable in equation.outvars)
        if fixed and not any(isinstance(value, str) for value in read):
            found = equation.primitive.bind(*read, **equation.params)
            return list(found) if equation.primitive.multiple_results else [found]
        if all(0 in variable.aval.shape for variable in equation.outvars):
            return [EMPTY] * len(equation.outvars)
        if name not in self._primitives:
            raise InputError(f"the network cannot be written as ONNX: it uses {name}, which azjax does not convert")
        return self._primitives[name](self, equation, read)

    def add(self, operator: str, inputs: Sequence[Value], **attributes: Any) -> str:
        """Writes a node with one output; returns the name of that."""
        return self.add_many(operator, inputs, 1, **attributes)[0]

    def add_many(self, operator: str, inputs: Sequence[Value], outputs: int, **attributes: Any) -> list[str]:
        """Writes a node; returns the names of its outputs."""
        names = [self._new_name() for _ in range(outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(operator, [self.name_of(value) for value in inputs], names, **attributes)
        )
        return names

    def name_of(self, value: Value) -> str:
        """The name of a value; a constant gets one."""
        if isinstance(value, str):
            if value == EMPTY:
                raise InputError("the network cannot be written as ONNX: it computes with an array without entries")
            return value
        name, array = self._new_name(), np.asarray(value)
        kind = self.element_type(array.dtype)
        array = array.astype(self.onnx.helper.tensor_dtype_to_np_dtype(kind))
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def element_type(self, dtype: Any) -> int:
        """ONNX's number of a dtype. bfloat16 is written as float32, since runtimes hardly compute in it."""
        dtype = np.dtype(np.float32) if dtype == jax.numpy.bfloat16 else np.dtype(dtype)
        try:
            return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))
        except (KeyError, ValueError):
            raise InputError(f"the network cannot be written as ONNX: it uses the dtype {dtype}") from None

    def reshape(self, value: Value, shape: Sequence[Any]) -> str:
        """`value` in another shape, at most one of whose axes is symbolic."""
        sizes = [size if is_fixed((size,)) else -1 for size in shape]
        if sizes.count(-1) > 1:
            raise InputError(f"the network cannot be written as ONNX: a shape {tuple(shape)} has two open axes")
        return self.add("Reshape", [value, np.array(sizes, np.int64)])

    def shape(self, shape: Sequence[Any]) -> str:
        """A shape as a value that the runtime computes; axes are fixed or the batch."""
        key = tuple(shape)
        if key not in self._shapes:
            parts: list[Value] = []
            for size in key:
                if not is_fixed((size,)) and size != self._batch:
                    raise InputError(f"the network cannot be written as ONNX: an axis of size {size}")
                parts.append(np.array([size], np.int64) if is_fixed((size,)) else self._batch_size)
            self._shapes[key] = self.add("Concat", parts, axis=0)
        return self._shapes[key]

    @functools.cached_property
    def _batch_size(self) -> str:
        return self.add("Shape", [self._input], start=0, end=1)

    def value_info(self, name: str, aval: Any) -> Any:
        """The declaration of an input or output."""
        sizes = [size if is_fixed((size,)) else "batch" for size in aval.shape]
        return self.onnx.helper.make_tensor_value_info(name, self.element_type(aval.dtype), sizes)

    def _new_name(self) -> str:
        self._count += 1
        return f"azjax/{self._count}"


def is_fixed(shape: Sequence[Any]) -> bool:
    """Whether no axis is symbolic."""
    return all(isinstance(size, int | np.integer) for size in shape)
