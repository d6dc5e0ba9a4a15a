"""Several runs at once: parts of an iteration under `jax.vmap`, and one network for each share of a batch.

Axis letters: `A` actions, `B` batch, `P` members of a population.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float32, PRNGKeyArray

from azjax.games.game import AnyGame
from azjax.networks import Mlp, Network, NetworkOutput, Variables


def over_members(function: Callable[..., Any], together: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """`function`, with a way of its own to run under `jax.vmap` over members.

    On CPU the members take turns: each gives the bits of a lone run, and `jax.vmap` of a loop would copy all that the
    loop carries.

    Args:
      function: of arrays alone.
      together: `together(P, *operands)`, a faster way for all members, with leading axes [P] on operands and results.
        It returns None where it does not apply.
    """

    def of_all(count: int, batched: list[Any], *operands: Any) -> tuple[Any, Any]:
        def with_members(is_batched: bool, leaf: Array) -> Array:
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


@dataclasses.dataclass(frozen=True)
class MemberNetworks:
    """P networks of one kind as a `Network`: the first evaluates the first B / P rows of a batch, and so on.

    Attributes:
      network: the kind.
      count: P, which divides B.
    """

    network: Network
    count: int

    def init(self, key: PRNGKeyArray, game: AnyGame) -> Variables:
        """Fresh variables with leading axes [P]."""
        return jax.vmap(lambda key: self.network.init(key, game))(jax.random.split(key, self.count))

    def apply(
        self, variables: Variables, observations: Float32[Array, "B *observation"], train: bool
    ) -> tuple[NetworkOutput, Variables]:
        """See `Network.apply`."""
        shares = observations.reshape(self.count, -1, *observations.shape[1:])
        apply = functools.partial(self.network.apply, train=train)
        if jax.default_backend() == "cpu" and not isinstance(self.network, Mlp):
            # Several kernels of other networks at once would be slow there, and round otherwise than alone.
            output, new = jax.lax.map(lambda share: apply(*share), (variables, shares))
        else:
            output, new = jax.vmap(apply)(variables, shares)
        return jax.tree.map(lambda leaf: leaf.reshape(len(observations), *leaf.shape[2:]), output), new
