"""mctx's transforms of Q, as values of the argument `qtransform`.

A program names one of them, or `functools.partial` of one with keyword arguments. The policy calls it with the number
of actions and gets the transform. It is not a function of a tree and a node, as in mctx.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
from jaxtyping import ArrayLike, Real, Shaped

from azjax.core.errors import InputError
from azjax.search.hyper import traced
from azjax.search.rules.bounded_q import BoundedQ
from azjax.search.rules.completed_q import CompletedQ
from azjax.search.rules.normalized_q import NormalizedQ
from azjax.search.rules.q_transform import SMALLEST_SPREAD, QTransform

MakeTransform: TypeAlias = Callable[..., Any]


def qtransform_by_min_max(
    num_actions: int, *, min_value: Real[ArrayLike, ""], max_value: Real[ArrayLike, ""]
) -> BoundedQ:
    """See `BoundedQ`."""
    del num_actions
    return BoundedQ(traced(min_value), traced(max_value))


def qtransform_by_parent_and_siblings(num_actions: int, *, epsilon: float = SMALLEST_SPREAD) -> NormalizedQ:
    """See `NormalizedQ`."""
    del num_actions
    return NormalizedQ(float(epsilon))


def qtransform_completed_by_mix_value(
    num_actions: int,
    *,
    value_scale: Real[ArrayLike, ""] = 0.1,
    maxvisit_init: Real[ArrayLike, ""] = 50.0,
    rescale_values: Shaped[ArrayLike, ""] = True,
    use_mixed_value: bool = True,
    epsilon: float = SMALLEST_SPREAD,
) -> CompletedQ:
    """See `CompletedQ`."""
    return CompletedQ(
        traced(maxvisit_init),
        traced(value_scale),
        jnp.asarray(rescale_values, bool),
        num_actions,
        bool(use_mixed_value),
        float(epsilon),
    )


_KNOWN: tuple[MakeTransform, ...] = (
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)


def transform_of(qtransform: MakeTransform, num_actions: int) -> QTransform:
    """The transform that the argument `qtransform` names.

    Raises:
      InputError: it is none of this file, or its keyword arguments are not those of the transform.
    """
    if getattr(qtransform, "func", qtransform) not in _KNOWN:
        known = ", ".join(make.__name__ for make in _KNOWN)
        raise InputError(f"qtransform must be one of {known}, or functools.partial of one, got {qtransform!r}")
    try:
        transform: QTransform = qtransform(num_actions)
    except TypeError as error:
        raise InputError(f"qtransform: {error}") from error
    return transform
