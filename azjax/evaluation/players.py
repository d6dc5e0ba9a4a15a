"""What a player is: a policy, which maps positions to a choice of moves, and the parameters that it reads.

The players of the package are in `standard_players.py` and `searching_players.py`. Axis letters: `B` batch, `A`
actions.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int, Int32, PRNGKeyArray, PyTree
from jaxtyping import ArrayLike as Numbers

from azjax.core import display
from azjax.games.game import State
from azjax.search import SearchResult, Tree


class MoveChoice(NamedTuple):
    """How a player chooses its moves in B positions.

    Attributes:
      probabilities: of the moves that it draws from; they sum to one over the legal actions, zero after the end.
      value: its own estimate of the result for the side to move, in -1..1; NaN where it has none.
      preferences: its ranking of the actions before it chooses, for display: the network's policy, or the search's
        share of visits. They sum to one as the probabilities do.
    """

    probabilities: Float32[Array, "B A"]
    value: Float32[Array, "B"]
    preferences: Float32[Array, "B A"]


@runtime_checkable
class Policy(Protocol):
    """A pure, jittable function of a batch of states, hashable by value: equal policies share one compilation."""

    def __call__(self, params: PyTree, key: PRNGKeyArray, states: State) -> MoveChoice:
        """Chooses moves in B positions.

        Args:
          params: the player's parameters.
          key: consumed by a policy that draws.
          states: every leaf [B, ...].
        """


@runtime_checkable
class RememberingPolicy(Policy, Protocol):
    """A policy that can keep a memory from move to move of a game: a pytree, every leaf [B, ...]."""

    def start(self, params: PyTree, states: State) -> PyTree:
        """The memory before the first move of B games."""

    def think(self, params: PyTree, key: PRNGKeyArray, states: State, memory: PyTree) -> tuple[MoveChoice, PyTree]:
        """Chooses moves in the current positions, and returns the updated memory too."""

    def observe(self, memory: PyTree, action: Int32[Array, "B"]) -> PyTree:
        """The memory after `action`, played by either side."""


@runtime_checkable
class SearchingPolicy(Policy, Protocol):
    """A policy that searches, and can return its search."""

    def search(self, params: PyTree, key: PRNGKeyArray, states: State, memory: PyTree = None) -> SearchResult:
        """The search behind its move choice; `memory` is that of a `RememberingPolicy`."""


@runtime_checkable
class TimedPolicy(Policy, Protocol):
    """A policy that can also search for a given time, in a host loop."""

    def search_within(
        self, params: PyTree, key: PRNGKeyArray, states: State, seconds: float, tree: Tree | None = None
    ) -> SearchResult:
        """Searches the positions, limited by time and not by simulations.

        Args:
          params: the player's parameters.
          key: consumed by the search.
          states: every leaf [B, ...].
          seconds: above 0; see `azjax.search.search_within`.
          tree: of the same games, to continue; it must not be read afterwards. None begins new trees.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class Player:
    """A policy with its parameters, under a name. Notebooks show it as a card.

    Attributes:
      name: for display; unique among the players of a round robin.
      policy: chooses the moves (static under jit).
      params: what the policy reads: any pytree of arrays.
      about: what else people should know, by label, such as which agent it is.
    """

    name: str
    policy: Policy = dataclasses.field(repr=False)
    params: PyTree = dataclasses.field(default=None, repr=False)
    about: Mapping[str, str] = dataclasses.field(default_factory=dict)

    _repr_mimebundle_ = display.mimebundle


def act(
    player: Player, key: PRNGKeyArray, states: State, memory: PyTree = None
) -> tuple[Int32[Array, "B"], MoveChoice, PyTree]:
    """Draws a move in each position, jitted.

    Args:
      player: the player to move.
      key: consumed by the player and the draw.
      states: every leaf [B, ...].
      memory: of these games, from `start_memory` and `observe`; None to consider the positions alone.

    Returns:
      The moves (0 after the end), the choice that they are drawn from, and the updated memory.
    """
    result: tuple[Array, MoveChoice, PyTree] = _act(player.policy, player.params, key, states, memory)
    return result


def choose(player: Player, key: PRNGKeyArray, states: State) -> MoveChoice:
    """The player's move choice in the states [B, ...], jitted."""
    choice: MoveChoice = _call(player.policy, "__call__", player.params, key, states)
    return choice


def search(player: Player, key: PRNGKeyArray, states: State, memory: PyTree = None) -> SearchResult | None:
    """The search behind the move choice of `act` on the same arguments, jitted; None if the player does not search."""
    if not isinstance(player.policy, SearchingPolicy):
        return None
    policy_key, _ = jax.random.split(key)
    result: SearchResult = _call(player.policy, "search", player.params, policy_key, states, memory)
    return result


def start_memory(player: Player, states: State) -> PyTree:
    """The player's memory before the first move from `states` [B, ...]; None if it keeps none."""
    if not isinstance(player.policy, RememberingPolicy):
        return None
    return _call(player.policy, "start", player.params, states)


def observe(player: Player, memory: PyTree, action: Int[Numbers, "B"]) -> PyTree:
    """The player's memory after `action`, played by either side."""
    return None if memory is None else _call(player.policy, "observe", memory, action)


def draw(key: PRNGKeyArray, probabilities: Float32[Array, "B A"]) -> Int32[Array, "B"]:
    """An action by its probability, never one of probability 0; action 0 where all are 0."""
    cumulative = jnp.cumsum(probabilities, axis=1)
    draw = jax.random.uniform(key, (len(probabilities), 1)) * cumulative[:, -1:]
    reached = (cumulative > draw) & (probabilities > 0)
    # Rounding can leave a draw beyond the last action; the likeliest action takes it.
    first, likeliest = jnp.argmax(reached, axis=1), jnp.argmax(probabilities, axis=1)
    return jnp.where(jnp.any(reached, axis=1), first, likeliest).astype(jnp.int32)


@functools.partial(jax.jit, static_argnums=0)
def _act(
    policy: Policy, params: PyTree, key: PRNGKeyArray, states: State, memory: PyTree
) -> tuple[Int32[Array, "B"], MoveChoice, PyTree]:
    policy_key, action_key = jax.random.split(key)
    if memory is not None and isinstance(policy, RememberingPolicy):
        choice, memory = policy.think(params, policy_key, states, memory)
    else:
        choice = policy(params, policy_key, states)
    return draw(action_key, choice.probabilities), choice, memory


@functools.partial(jax.jit, static_argnums=(0, 1))
def _call(policy: Policy, method: str, *arguments: Any) -> Any:
    return getattr(policy, method)(*arguments)
