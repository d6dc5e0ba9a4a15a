"""How the parts of an iteration are done for several runs at once, under `jax.vmap`. Axis letters: `P` members."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap


def over_members(function: Callable, together: Callable[..., Any] | None = None) -> Callable:
    """`function`, which under `jax.vmap` over members is done as suits the device.

    On CPU one member has its turn after the other: its bits are then those of a lone run, and `jax.vmap` of a loop
    would copy all that it carries.

    Args:
      function: of arrays alone.
      together: `together(P, *operands)`, where there is a better way for all: the same of operands that have leading
        axes [P]; it may return None.
    """

    def of_all(count: int, batched: list[Any], *operands: Any) -> tuple[Any, Any]:
        def with_members(is_batched: bool, leaf: chex.Array) -> chex.Array:
            return leaf if is_batched else jnp.broadcast_to(leaf, (count, *leaf.shape))

        operands = jax.tree.map(with_members, tuple(batched), operands)
        results = together(count, *operands) if together else None
        if results is None and jax.default_backend() == "cpu":
            results = jax.lax.map(lambda operands: function(*operands), operands)
        elif results is None:
            results = jax.vmap(function)(*operands)
        return results, jax.tree.map(lambda _: True, results)

    with_rule = custom_vmap(function)
    with_rule.def_vmap(of_all)
    return with_rule
