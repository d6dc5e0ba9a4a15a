"""Evaluators of new leaves; see `azjax.search.Evaluator`. Frozen dataclasses: equal ones share one compilation.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray, PyTree, Shaped, UInt32

from azjax.core.bits import mix
from azjax.core.errors import InputError
from azjax.core.xla import materialize
from azjax.games.game import AnyGame, State

VALUE_ERROR = "value_error"
"""The auxiliary output of a network [B] with the expected error of its value (root of the mean square)."""

_Evaluation: TypeAlias = tuple[Float[Array, "B A"], Float[Array, "B"]]


@runtime_checkable
class _NetworkOutput(Protocol):
    @property
    def prior_logits(self) -> Float32[Array, "B A"]: ...
    @property
    def value(self) -> Float32[Array, "B"]: ...


@runtime_checkable
class PolicyValueNetwork(Protocol):
    """What a search needs of a network; see `azjax.networks.Network`."""

    def apply(self, variables: Any, observations: Any, train: bool) -> tuple[_NetworkOutput, Any]: ...


@dataclasses.dataclass(frozen=True)
class NetworkEvaluator:
    """The network `net`, not in training; `params` are its variables.

    with_error: give the network's auxiliary output `value_error` too, so that simulations count by it (see
      `azjax/search/uncertainty.py`).

    Raises:
      InputError: the network does not give that output.
    """

    net: PolicyValueNetwork
    game: AnyGame
    with_error: bool = False

    def __call__(
        self, params: PyTree, key: PRNGKeyArray, states: State
    ) -> _Evaluation | tuple[*_Evaluation, Float[Array, "B"]]:
        del key
        output, _ = self.net.apply(params, jax.vmap(self.game.observe)(states), train=False)
        if not self.with_error:
            return output.prior_logits, output.value
        auxiliary = getattr(output, "auxiliary", {})
        if VALUE_ERROR not in auxiliary:
            given = ", ".join(sorted(auxiliary)) or "none"
            raise InputError(f"the search needs the auxiliary output {VALUE_ERROR!r}; the network gives: {given}")
        return output.prior_logits, output.value, auxiliary[VALUE_ERROR]


@dataclasses.dataclass(frozen=True)
class UniformEvaluator:
    """Equal priors and the value 0. `params` are not read."""

    game: AnyGame

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> _Evaluation:
        del params, key
        batch = states.current_player.shape[0]
        return jnp.zeros((batch, self.game.num_actions), jnp.float32), jnp.zeros(batch, jnp.float32)


@dataclasses.dataclass(frozen=True)
class RolloutEvaluator:
    """Equal priors, and the result of one game continued with uniformly random moves. `params` are not read."""

    game: AnyGame

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> _Evaluation:
        del params
        game, batch = self.game, states.current_player.shape[0]

        def play(carry: Any) -> Any:
            states, total, ply = carry
            bits = jax.random.bits(jax.random.fold_in(key, ply), (batch,), jnp.uint32)
            # After the end a step changes nothing and pays nothing.
            states = jax.vmap(game.step)(states, jax.vmap(game.sample_legal_action)(states, bits))
            return states, total + states.rewards, ply + 1

        def goes_on(carry: Any) -> Any:
            # A game that breaks the law may have no legal action, and would go on for ever.
            return ~jnp.all(carry[0].terminated) & (carry[2] < game.max_plies)

        start = states, jnp.zeros((batch, 2), jnp.float32), jnp.int32(0)
        _, total, _ = jax.lax.while_loop(goes_on, play, start)
        value = jnp.where(states.current_player == 0, total[:, 0], total[:, 1])
        return jnp.zeros((batch, game.num_actions), jnp.float32), value


@dataclasses.dataclass(frozen=True)
class RandomEvaluator:
    """Random priors and values, for timing a search without a network. `params` are not read."""

    game: AnyGame

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> _Evaluation:
        del params
        batch = states.current_player.shape[0]
        # One draw for each position, hashed with its actions: a good generator would take longer than the search.
        own = materialize(jax.random.bits(key, (batch, 1), jnp.uint32))
        action = jnp.arange(1, self.game.num_actions + 1, dtype=jnp.uint32)[None]
        draws = _unit(mix(own + action * np.uint32(0x9E3779B9)))
        return jnp.log(draws), 2 * _unit(mix(own))[:, 0] - 1


def _unit(bits: UInt32[Array, "..."]) -> Float32[Array, "..."]:
    """The upper 24 bits as a number between 0 and 1."""
    return ((bits >> np.uint32(8)).astype(jnp.float32) + 0.5) / 2**24


@dataclasses.dataclass(frozen=True)
class TableEvaluator:
    """Looks positions up: `params` are `(prior_logits [M, A], values [M])`, `index(state)` is the row of one state.

    An index that hashes the position makes a fixed pseudo-random evaluator of any game.
    """

    index: Callable[[Any], Int[Array, ""]]

    def __call__(
        self, params: tuple[Shaped[Array, "M A"], Shaped[Array, "M"]], key: PRNGKeyArray, states: State
    ) -> _Evaluation:
        del key
        prior_logits, values = params
        row = jax.vmap(self.index)(states)
        return prior_logits[row], values[row]


network = NetworkEvaluator
uniform = UniformEvaluator
rollout = RolloutEvaluator
random = RandomEvaluator
table = TableEvaluator
