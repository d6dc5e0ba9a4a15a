"""A program of JAX as plain data: its StableHLO, inlined and numbered, for interpreters outside Python.

`azjax/play/page/stablehlo.js` is such an interpreter. What each operation means is said in
https://openxla.org/stablehlo/spec.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jaxtyping import PyTree

from azjax.core.errors import AzjaxError, InputError

Json: TypeAlias = dict[str, Any]

_SAME = ("sdy.sharding_constraint", "stablehlo.optimization_barrier")
"""Operations whose results are their operands."""

_PLAIN = (
    *("abs", "add", "and", "bitcast_convert", "clamp", "convert", "divide", "exponential", "floor", "log", "maximum"),
    *("minimum", "multiply", "negate", "next_after", "not", "or", "popcnt", "power", "remainder", "reshape", "rsqrt"),
    *("select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sqrt", "square", "subtract"),
    *("log_plus_one", "logistic", "tanh", "xor"),
)
"""Operations without attributes."""

_DTYPES = ("f32", "i32", "ui32", "i16", "ui16", "i8", "ui8", "i1")

_COMBINED = ("add", "and", "maximum", "minimum", "multiply", "or")
"""What a reduction or a scatter may do with two elements, besides keeping the second one."""

_DIMENSIONS: dict[str, tuple[str, type, tuple[str, ...]]] = {
    "gather": (
        "dimension_numbers",
        stablehlo.GatherDimensionNumbers,
        (
            *("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims"),
            *("start_index_map", "index_vector_dim"),
        ),
    ),
    "scatter": (
        "scatter_dimension_numbers",
        stablehlo.ScatterDimensionNumbers,
        (
            *("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"),
            *("scattered_dims_to_operand_dims", "index_vector_dim"),
        ),
    ),
    "convolution": (
        "dimension_numbers",
        stablehlo.ConvDimensionNumbers,
        (
            *("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
            *("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"),
            *("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
        ),
    ),
    "dot_general": (
        "dot_dimension_numbers",
        stablehlo.DotDimensionNumbers,
        (
            *("lhs_batching_dimensions", "rhs_batching_dimensions"),
            *("lhs_contracting_dimensions", "rhs_contracting_dimensions"),
        ),
    ),
}


def to_program(function: Callable[..., PyTree], *arguments: PyTree) -> Json:
    """A function as a program of values that are known by number.

    Args:
      function: of arrays, jittable.
      arguments: examples, or their shapes.

    Returns:
      `types`: the dtype (`f32`, `i32`, `ui32`, `i1`, ...) and the shape of each value.
      `constants`: pairs of a value and its elements, those of `f32` as the integers with the same bits; where all are
        equal, only one.
      `inputs`: the values of the leaves of the arguments.
      `operations`: in order, each with its name `op`, its operands `in`, its results `out` and its attributes. `while`
        and `case` have `regions` with inputs, operations and outputs, which read the values around them too.
      `outputs`: the values of the leaves of the result.

    Raises:
      InputError: the function is none of arrays, or needs an operation that programs do not have.
    """
    try:
        with jax.threefry_partitionable(False):  # else random numbers need integers of 64 bits
            traced = jax.jit(function, keep_unused=True).trace(*arguments)
            module = traced.lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    except AzjaxError:
        raise
    except Exception as error:  # rules and networks from outside the package can raise any
        told = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"it cannot be a program of arrays: {told}") from error
    return _Writer(module).program()


class _Writer:
    """Writes a module of StableHLO. Every call of a function becomes a copy of its operations."""

    def __init__(self, module: ir.Module) -> None:
        functions = [each.operation for each in module.body.operations if each.operation.name == "func.func"]
        self._bodies: dict[str, Any] = {
            ir.StringAttr(each.attributes["sym_name"]).value: each.regions[0].blocks[0] for each in functions
        }
        self._types: list[tuple[str, list[int]]] = []
        self._constants: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int] = {}

    def program(self) -> Json:
        body = self._block(self._bodies["main"], {})
        constants = [[number, elements] for (_, _, elements), number in self._constants.items()]
        return {"types": self._types, "constants": constants, **body}

    def _block(self, block: Any, outside: dict[Any, int]) -> Json:
        """The inputs, operations and outputs of a block, which may read the values of `outside`."""
        values = dict(outside)
        inputs = self._define(block.arguments, values)
        operations: list[Json] = []
        outputs = self._write(block, values, operations)
        return {"inputs": inputs, "operations": operations, "outputs": outputs}

    def _define(self, results: Any, values: dict[Any, int]) -> list[int]:
        """Numbers new values."""
        numbers = []
        for result in results:
            shaped = ir.RankedTensorType(result.type)
            if str(shaped.element_type) not in _DTYPES:
                raise InputError(f"a program cannot have values of {shaped.element_type}, only {', '.join(_DTYPES)}")
            values[result] = len(self._types)
            numbers.append(len(self._types))
            self._types.append((str(shaped.element_type), list(shaped.shape)))
        return numbers

    def _write(self, block: Any, values: dict[Any, int], operations: list[Json]) -> list[int]:
        """Appends the operations of a block, and returns the values of its end."""
        for each in block.operations:
            operation = each.operation
            operands = [values[operand] for operand in operation.operands]
            name = operation.name
            if name in ("func.return", "stablehlo.return"):
                return operands
            if name == "stablehlo.constant":
                values[operation.results[0]] = self._constant(operation.attributes["value"])
            elif name in _SAME:
                values |= zip(operation.results, operands, strict=True)
            elif name == "func.call":
                called = self._bodies[operation.attributes["callee"].value]
                results = self._write(called, dict(zip(called.arguments, operands, strict=True)), operations)
                values |= zip(operation.results, results, strict=True)
            elif name == "stablehlo.case" and (chosen := self._known(operands[0])) is not None:
                branch = operation.regions[min(chosen, len(operation.regions) - 1)].blocks[0]
                values |= zip(operation.results, self._write(branch, dict(values), operations), strict=True)
            else:
                written = {"op": name.partition(".")[2], "in": operands, **self._attributes(operation, values)}
                operations.append({**written, "out": self._define(operation.results, values)})
        raise AssertionError("a block has no end")

    def _constant(self, value: Any) -> int:
        shaped = ir.RankedTensorType(value.type)
        dtype, shape = str(shaped.element_type), tuple(shaped.shape)
        elements = np.atleast_1d(np.array(ir.DenseElementsAttr(value)))
        if dtype == "f32":
            elements = elements.view(np.uint32)
        flat = elements.ravel()
        flat = flat[:1] if (flat == flat[:1]).all() else flat
        known = dtype, shape, tuple(flat.astype(int).tolist())
        if known not in self._constants:
            self._constants[known] = len(self._types)
            self._types.append((dtype, list(shape)))
        return self._constants[known]

    def _known(self, value: int) -> int | None:
        """The constant scalar that is this value, such as the number of the platform."""
        return next((elements[0] for (_, _, elements), number in self._constants.items() if number == value), None)

    def _attributes(self, operation: Any, values: dict[Any, int]) -> Json:
        """What an operation needs besides its operands."""
        name, attributes = operation.name.partition(".")[2], operation.attributes
        if name in _PLAIN:
            return {}
        if name in _DIMENSIONS:
            where, kind, names = _DIMENSIONS[name]
            numbers = kind(attributes[where])
            found = {each: getattr(numbers, each) for each in names}
            as_data: Json = {
                each: number if isinstance(number, int) else list(number) for each, number in found.items()
            }
            if name == "gather":
                as_data["slice_sizes"] = list(attributes["slice_sizes"])
            if name == "convolution":
                as_data |= self._windows(operation)
            return as_data | ({"combine": self._combination(operation)} if name == "scatter" else {})
        if name in ("while", "case"):
            return {"regions": [self._block(region.blocks[0], values) for region in operation.regions]}
        if name == "reduce":
            combine = self._combination(operation)
            whole = {} if combine else {"regions": [self._block(operation.regions[0].blocks[0], values)]}
            return {"dimensions": list(attributes["dimensions"]), "combine": combine, **whole}
        if name == "reduce_window":
            names = ("window_dimensions", "window_strides")
            if {*attributes["base_dilations"], *attributes["window_dilations"]} != {1}:
                raise InputError("a program cannot have a reduce_window with dilations")
            padding = np.array(ir.DenseElementsAttr(attributes["padding"])).tolist()
            sizes = {each: list(attributes[each]) for each in names}
            return {**sizes, "padding": padding, "combine": self._combination(operation)}
        if name == "compare":
            direction = stablehlo.ComparisonDirectionAttr(attributes["comparison_direction"])
            return {"direction": direction.value}
        lists = {
            "broadcast_in_dim": ("broadcast_dimensions",),
            "dynamic_slice": ("slice_sizes",),
            "dynamic_update_slice": (),
            "pad": ("edge_padding_low", "edge_padding_high", "interior_padding"),
            "reverse": ("dimensions",),
            "slice": ("start_indices", "limit_indices", "strides"),
            "transpose": ("permutation",),
        }
        if name in lists:
            return {each: list(attributes[each]) for each in lists[name]}
        if name in ("concatenate", "iota"):
            return {
                "dimension": ir.IntegerAttr(
                    attributes["dimension" if name == "concatenate" else "iota_dimension"]
                ).value
            }
        raise InputError(f"a program cannot have the operation {operation.name}")

    def _windows(self, operation: Any) -> Json:
        """The strides, padding and groups of a convolution."""
        attributes = operation.attributes
        given = set(attributes[place].name for place in range(len(attributes)))
        dilations = [
            each for each in ("lhs_dilation", "rhs_dilation") if each in given and set(attributes[each]) != {1}
        ]
        if dilations or attributes["batch_group_count"].value != 1:
            raise InputError("a program cannot have a convolution with dilations or groups of the batch")
        strides = list(attributes["window_strides"])
        padding = np.array(ir.DenseElementsAttr(attributes["padding"])).tolist()
        return {"window_strides": strides, "padding": padding, "groups": attributes["feature_group_count"].value}

    def _combination(self, operation: Any) -> str | None:
        """What the region of a reduction or a scatter does with two elements; None for more than one operation."""
        block = operation.regions[0].blocks[0]
        inside = [each.operation for each in block.operations]
        arguments = list(block.arguments)
        if len(arguments) == 2 and len(inside) == 1 and list(inside[0].operands) == arguments[1:]:
            return "second"
        name: str = inside[0].name.partition(".")[2]
        if len(arguments) == 2 and len(inside) == 2 and name in _COMBINED:
            return name
        if operation.name == "stablehlo.reduce":
            return None
        raise InputError(
            f"a program cannot have this region of {operation.name}: {', '.join(each.name for each in inside)}"
        )
