"""The ONNX nodes of each primitive of JAX that networks commonly use."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode, RoundingMethod

from azjax.core.errors import InputError
from azjax.export.onnx_graph import EMPTY, Graph, Value, Write, is_fixed


def _elementwise(operator: str) -> Write:
    return lambda graph, equation, inputs: [graph.add(operator, inputs)]


def _scalar(number: float, equation: Any) -> Value:
    return np.asarray(number, equation.invars[0].aval.dtype)


def _identity(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.name_of(inputs[0])]


def _integer_pow(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Pow", [inputs[0], _scalar(equation.params["y"], equation)])]


def _square(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Mul", [inputs[0], inputs[0]])]


def _rsqrt(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Reciprocal", [graph.add("Sqrt", inputs)])]


def _expm1(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Sub", [graph.add("Exp", inputs), _scalar(1, equation)])]


def _log1p(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Log", [graph.add("Add", [inputs[0], _scalar(1, equation)])])]


def _erfc(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Sub", [_scalar(1, equation), graph.add("Erf", inputs)])]


def _not_equal(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Not", [graph.add("Equal", inputs)])]


def _remainder(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Mod", inputs, fmod=1)]  # with the sign of the dividend


def _round(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    if equation.params["rounding_method"] != RoundingMethod.TO_NEAREST_EVEN:
        raise InputError("the network cannot be written as ONNX: it rounds halves away from zero")
    return [graph.add("Round", inputs)]


def _clamp(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    low, value, high = inputs
    return [graph.add("Min", [graph.add("Max", [value, low]), high])]


def _select(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    which, *cases = inputs
    if len(cases) != 2 or equation.invars[0].aval.dtype != bool:
        raise InputError("the network cannot be written as ONNX: it uses select_n with more than two cases")
    return [graph.add("Where", [which, cases[1], cases[0]])]


def _convert(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Cast", inputs, to=graph.element_type(equation.params["new_dtype"]))]


def _reshape(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.reshape(inputs[0], equation.outvars[0].aval.shape)]


def _broadcast(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    shape, kept = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]
    before = equation.invars[0].aval.shape
    aligned = [1] * len(shape)
    for axis, size in zip(kept, before, strict=True):
        aligned[axis] = size
    value = graph.reshape(inputs[0], aligned) if list(before) != aligned else inputs[0]
    if aligned == list(shape):
        return [graph.name_of(value)]
    return [graph.add("Expand", [value, graph.shape(shape)])]


def _transpose(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Transpose", inputs, perm=list(equation.params["permutation"]))]


def _tile(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Tile", [inputs[0], np.array(equation.params["reps"], np.int64)])]


def _concatenate(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    parts = [value for value in inputs if not (isinstance(value, str) and value == EMPTY)]
    return [graph.add("Concat", parts, axis=equation.params["dimension"])]


def _stack(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    axis = np.array([equation.params["axis"]], np.int64)
    return [graph.add("Concat", [graph.add("Unsqueeze", [value, axis]) for value in inputs], axis=int(axis[0]))]


def _split(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    sizes = np.array(equation.params["sizes"], np.int64)
    return graph.add_many("Split", [inputs[0], sizes], len(sizes), axis=equation.params["axis"])


def _slice(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    shape, params = equation.invars[0].aval.shape, equation.params
    steps = params["strides"] or [1] * len(shape)
    bounds = zip(params["start_indices"], params["limit_indices"], steps, shape, strict=True)
    cut = [
        (axis, start, stop, step)
        for axis, (start, stop, step, size) in enumerate(bounds)
        if (start, stop, step) != (0, size, 1)
    ]
    if not is_fixed([number for row in cut for number in row]):
        raise InputError("the network cannot be written as ONNX: it takes a slice of the batch")
    if not cut:
        return [graph.name_of(inputs[0])]
    axes, starts, stops, strides = (np.array(column, np.int64) for column in zip(*cut, strict=True))
    return [graph.add("Slice", [inputs[0], starts, stops, axes, strides])]


def _reverse(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    axes = np.array(equation.params["dimensions"], np.int64)
    last, first, back = np.full_like(axes, -1), np.full_like(axes, np.iinfo(np.int64).min), np.full_like(axes, -1)
    return [graph.add("Slice", [inputs[0], last, first, axes, back])]


def _is_finite(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    return [graph.add("Less", [graph.add("Abs", inputs), _scalar(np.inf, equation)])]


def _gather(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    """Entries of one axis, as `x[:, [3, 1]]` and `jnp.take` take them."""
    operand, numbers = inputs
    dimensions, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    shape = equation.invars[0].aval.shape
    (axis, *others), rank = dimensions.start_index_map or (0,), len(shape)
    whole = [size == full for number, (size, full) in enumerate(zip(sizes, shape, strict=True)) if number != axis]
    kept = [number for number in range(rank) if number not in dimensions.collapsed_slice_dims]
    simple = not others and all(whole) and sizes[axis] == 1 and not dimensions.operand_batching_dims
    if not simple or set(dimensions.collapsed_slice_dims) - {axis}:
        raise InputError("the network cannot be written as ONNX: it gathers from several axes")
    *counted, _ = equation.invars[1].aval.shape
    last = np.int64(shape[axis] - 1)
    if isinstance(numbers, str):
        numbers = graph.add("Cast", [graph.reshape(numbers, counted)], to=graph.element_type(np.int64))
        inside = graph.add("Min", [graph.add("Max", [numbers, np.int64(0)]), last])
        within = graph.add("Equal", [inside, numbers])
    else:
        numbers = np.asarray(numbers[..., 0], np.int64)
        inside = np.clip(numbers, 0, last)
        within = inside == numbers
    taken = graph.add("Gather", [operand, inside], axis=axis)
    if equation.params["mode"] == GatherScatterMode.FILL_OR_DROP and (isinstance(within, str) or not within.all()):
        within = graph.reshape(within, [1] * axis + counted + [1] * (rank - axis - 1))
        fill_value = np.asarray(equation.params["fill_value"], equation.outvars[0].aval.dtype)
        taken = graph.add("Where", [within, taken, fill_value])
    after = equation.outvars[0].aval.shape
    places = dict(zip(dimensions.offset_dims, kept, strict=True))
    order = _order_of_axes([places.get(place) for place in range(len(after))], axis, len(counted), rank)
    if order != sorted(order):
        taken = graph.add("Transpose", [taken], perm=order)
    return [graph.reshape(taken, after)]


def _order_of_axes(sources: Sequence[int | None], axis: int, count: int, rank: int) -> list[int]:
    """The axes of ONNX's result in the order of JAX's.

    ONNX has the axes of the numbers where the axis was, JAX where no axis of the operand is left.

    Args:
      sources: of each axis of JAX's result the one of the operand; None for one of the numbers.
      axis: from which entries are taken.
      count: axes of the numbers.
      rank: of the operand.
    """
    own = list(range(axis, axis + count))
    rest = [number if number < axis else number + count - 1 for number in range(rank) if number != axis]
    return [(own if source is None else rest).pop(0) for source in sources if source is None or source != axis]


def _pad(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    low, high, inner = zip(*equation.params["padding_config"], strict=True)
    if any(inner):
        raise InputError("the network cannot be written as ONNX: it pads between entries")
    return [graph.add("Pad", [inputs[0], np.array([*low, *high], np.int64), inputs[1]])]


def _reduce(operator: str) -> Write:
    def write(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
        axes = np.array(equation.params["axes"], np.int64)
        return [graph.add(operator, [inputs[0], axes], keepdims=0)] if len(axes) else [graph.name_of(inputs[0])]

    return write


def _reduce_bools(operator: str) -> Write:
    reduce = _reduce(operator)

    def write(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
        numbers = graph.add("Cast", inputs, to=graph.element_type(np.int32))
        return [graph.add("Cast", reduce(graph, equation, [numbers]), to=graph.element_type(np.bool_))]

    return write


def _arg(operator: str) -> Write:
    def write(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
        (axis,) = equation.params["axes"]
        found = graph.add(operator, inputs, axis=axis, keepdims=0)
        return [graph.add("Cast", [found], to=graph.element_type(equation.params["index_dtype"]))]

    return write


def _cumulative_sum(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    axis = np.array(equation.params["axis"], np.int64)
    return [graph.add("CumSum", [inputs[0], axis], reverse=int(equation.params["reverse"]))]


def _product(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    """`dot_general` as a MatMul of [batch, free, contracted] with [batch, contracted, free]."""
    contracted, batched = equation.params["dimension_numbers"]
    sides, lengths = [], []
    for side in range(2):
        shape, batch, contract = equation.invars[side].aval.shape, batched[side], contracted[side]
        free = [axis for axis in range(len(shape)) if axis not in (*batch, *contract)]
        order = [*batch, *free, *contract] if side == 0 else [*batch, *contract, *free]
        rows, inner = math.prod(shape[axis] for axis in free), math.prod(shape[axis] for axis in contract)
        lead = [math.prod(shape[axis] for axis in batch)] if batch else []
        value = graph.add("Transpose", [inputs[side]], perm=order) if order != sorted(order) else inputs[side]
        target = [*lead, rows, inner] if side == 0 else [*lead, inner, rows]
        sides.append(value if list(shape) == target else graph.reshape(value, target))
        lengths.append(rows)
    product = graph.add("MatMul", sides)
    shape = equation.outvars[0].aval.shape
    is_final = list(shape) == lengths and not batched[0]
    return [product if is_final else graph.reshape(product, shape)]


def _convolution(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
    params, numbers = equation.params, equation.params["dimension_numbers"]
    padding = params["padding"]
    if (
        any(size != 1 for size in params["lhs_dilation"])
        or params["batch_group_count"] != 1
        or any(size < 0 for pair in padding for size in pair)
    ):
        raise InputError("the network cannot be written as ONNX: it uses a transposed or cropped convolution")
    planes = graph.add("Transpose", [inputs[0]], perm=list(numbers.lhs_spec))
    kernel: Value = inputs[1]
    if isinstance(kernel, str):
        kernel = graph.add("Transpose", [kernel], perm=list(numbers.rhs_spec))
    else:
        kernel = np.transpose(np.asarray(kernel), numbers.rhs_spec)
    result = graph.add(
        "Conv",
        [planes, kernel],
        strides=list(params["window_strides"]),
        pads=[low for low, _ in padding] + [high for _, high in padding],
        dilations=list(params["rhs_dilation"]),
        group=params["feature_group_count"],
    )
    return [graph.add("Transpose", [result], perm=np.argsort(numbers.out_spec).tolist())]


def _pooling(operator: str) -> Write:
    def write(graph: Graph, equation: Any, inputs: list[Value]) -> list[str]:
        params, shape = equation.params, equation.invars[0].aval.shape
        window, strides, padding = params["window_dimensions"], params["window_strides"], params["padding"]
        if any(size != 1 for size in params["base_dilation"] + params["window_dilation"]):
            raise InputError("the network cannot be written as ONNX: it uses a dilated pooling")
        kept = [axis for axis in range(len(shape)) if (window[axis], strides[axis], *padding[axis]) == (1, 1, 0, 0)]
        pooled = [axis for axis in range(len(shape)) if axis not in kept]
        if not pooled:
            return [graph.name_of(inputs[0])]
        order = [*kept, *pooled]
        planes = graph.add("Transpose", [inputs[0]], perm=order)
        planes = graph.reshape(planes, [math.prod(shape[axis] for axis in kept), 1, *(shape[axis] for axis in pooled)])
        options: dict[str, Any] = {} if operator == "MaxPool" else {"count_include_pad": 1}
        result = graph.add(
            operator,
            [planes],
            kernel_shape=[window[axis] for axis in pooled],
            strides=[strides[axis] for axis in pooled],
            pads=[padding[axis][0] for axis in pooled] + [padding[axis][1] for axis in pooled],
            **options,
        )
        if operator == "AveragePool":
            result = graph.add("Mul", [result, _scalar(math.prod(window), equation)])
        after = equation.outvars[0].aval.shape
        result = graph.reshape(result, [after[axis] for axis in order])
        return [graph.add("Transpose", [result], perm=np.argsort(order).tolist())]

    return write


PRIMITIVES: dict[str, Write] = {
    "abs": _elementwise("Abs"),
    "add": _elementwise("Add"),
    "add_any": _elementwise("Add"),
    "and": _elementwise("And"),
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "broadcast_in_dim": _broadcast,
    "ceil": _elementwise("Ceil"),
    "clamp": _clamp,
    "concatenate": _concatenate,
    "conv_general_dilated": _convolution,
    "convert_element_type": _convert,
    "copy": _identity,
    "copy_p": _identity,
    "cos": _elementwise("Cos"),
    "cumsum": _cumulative_sum,
    "div": _elementwise("Div"),
    "dot_general": _product,
    "eq": _elementwise("Equal"),
    "erf": _elementwise("Erf"),
    "erfc": _erfc,
    "exp": _elementwise("Exp"),
    "expand_dims": _reshape,
    "expm1": _expm1,
    "floor": _elementwise("Floor"),
    "gather": _gather,
    "ge": _elementwise("GreaterOrEqual"),
    "gt": _elementwise("Greater"),
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": _elementwise("LessOrEqual"),
    "log": _elementwise("Log"),
    "log1p": _log1p,
    "logistic": _elementwise("Sigmoid"),
    "lt": _elementwise("Less"),
    "max": _elementwise("Max"),
    "min": _elementwise("Min"),
    "mul": _elementwise("Mul"),
    "ne": _not_equal,
    "neg": _elementwise("Neg"),
    "not": _elementwise("Not"),
    "or": _elementwise("Or"),
    "pad": _pad,
    "pow": _elementwise("Pow"),
    "reduce_and": _reduce_bools("ReduceMin"),
    "reduce_max": _reduce("ReduceMax"),
    "reduce_min": _reduce("ReduceMin"),
    "reduce_or": _reduce_bools("ReduceMax"),
    "reduce_prod": _reduce("ReduceProd"),
    "reduce_sum": _reduce("ReduceSum"),
    "reduce_window_max": _pooling("MaxPool"),
    "reduce_window_sum": _pooling("AveragePool"),
    "rem": _remainder,
    "reshape": _reshape,
    "rev": _reverse,
    "round": _round,
    "rsqrt": _rsqrt,
    "select_n": _select,
    "sign": _elementwise("Sign"),
    "sin": _elementwise("Sin"),
    "slice": _slice,
    "split": _split,
    "sqrt": _elementwise("Sqrt"),
    "square": _square,
    "squeeze": _reshape,
    "stack": _stack,
    "stop_gradient": _identity,
    "sub": _elementwise("Sub"),
    "tanh": _elementwise("Tanh"),
    "tile": _tile,
    "transpose": _transpose,
}
"""By the name of the primitive."""
