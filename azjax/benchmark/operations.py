"""The operations of a search's program on a GPU: a measure of its cost there where there is none.

A GPU takes microseconds to begin a kernel, however small. XLA fuses operations into kernels, which is not counted here.
"""

import collections
from collections.abc import Iterator, Mapping
from typing import Any

import jax

_FREE = {"stablehlo.constant", "stablehlo.return", "func.return"}
_LOOP, _CALL = "stablehlo.while", "func.call"
_BRANCHES = {"stablehlo.case", "stablehlo.if"}


def operations_by_loop(traced: jax.stages.Traced) -> list[int]:
    """Counts the operations of the largest loop, that over the simulations, lowered for CUDA.

    Returns:
      how many run once in each step of that loop, how many in each step of the loops within it, and so on.
    """
    module = traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    functions = {operation.attributes["sym_name"].value: operation for operation in module.body.operations}
    loops = [loop for loop in _operations(functions["main"], functions) if loop.name == _LOOP]
    counts = [_count(loop, functions) for loop in loops]
    return max(counts, key=sum, default=[])


def _count(loop: Any, functions: Mapping[str, Any]) -> list[int]:
    counts: collections.Counter[int] = collections.Counter()

    def visit(loop: Any, level: int) -> None:
        for operation in _operations(loop, functions):
            counts[level] += 1
            if operation.name == _LOOP:
                visit(operation, level + 1)

    visit(loop, 0)
    return [counts[level] for level in range(len(counts))]


def _operations(parent: Any, functions: Mapping[str, Any]) -> Iterator[Any]:
    """Those of the regions of `parent`, and of what they call or choose between; not those of loops in them."""
    for region in parent.regions:
        for block in region.blocks:
            for operation in block.operations:
                name = operation.operation.name
                if name == _CALL:
                    yield from _operations(functions[operation.attributes["callee"].value], functions)
                elif name in _BRANCHES:
                    yield from _operations(operation, functions)
                elif name not in _FREE:
                    yield operation.operation
