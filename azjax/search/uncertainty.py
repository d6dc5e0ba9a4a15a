"""Simulations that count by how sure their evaluation is, as in KataGo 1.9 and later (Wu, docs/KataGoMethods.md,
"Uncertainty-Weighted MCTS Playouts").

An evaluator that gives the expected error of its values turns this on. The mean of a node is then the mean by weight,
and PUCT counts weights in place of visits. Results count visits, as without weights.

Axis letters: `R` simulations that end together.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from azjax.search.dynamics import Evaluation
from azjax.search.selection import Numbers, Selection
from azjax.search.tree import WEIGHT

COEFFICIENT = 0.25
"""About the error at which a simulation has the weight 1. The numbers are KataGo's."""
MAX_WEIGHT = 8.0
"""The weight without an error."""


def weight_of_values(evaluation: Evaluation, evaluated: Bool[Array, "R"]) -> Float32[Array, "R"] | None:
    """The weights of simulations that end in these values, exact ones where not `evaluated`; None if all are equal."""
    if evaluation.error is None:
        return None
    error = jnp.where(evaluated, evaluation.error, 0.0)
    return COEFFICIENT / (error + COEFFICIENT / MAX_WEIGHT)


def sums_of_visit(
    selection: Selection, value: Float32[Array, "R"], weight: Float32[Array, "R"] | None
) -> tuple[Float32[Array, "R"], dict[str, Numbers]]:
    """What a visit with this return adds to the returns, and to the other sums of a node."""
    sums = dict(selection.sums(value))
    return (value, sums) if weight is None else (weight * value, {**sums, WEIGHT: weight})
