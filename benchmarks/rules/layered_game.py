"""A random game with free numbers of actions, legal actions and plies, to measure how a search scales.

Axis letters: `M` nodes of the game, `A` actions, `K` slots.
"""

import dataclasses
import functools

import chex
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game


@pytree_dataclass
class LayeredState:
    """See `azjax.games.game.State`.

    Attributes:
      node: int32 []; the node of the game.
    """

    node: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class LayeredGame(Game[LayeredState]):
    """Every node has the same number of legal actions, drawn at random, and every game ends at `depth`.

    Attributes:
      actions: A.
      legal: K; number of legal actions of each node.
      depth: plies of a game.
      width: nodes of each layer; an action leads to some node of the next layer.
    """

    actions: int
    legal: int
    depth: int = 8
    width: int = 1024
    name: str = "layered"

    def __post_init__(self) -> None:
        if not 1 <= self.legal <= self.actions:
            raise InputError(f"legal must be 1..{self.actions}, the number of actions, got {self.legal}")

    @property
    def num_actions(self) -> int:
        return self.actions

    @property
    def max_legal_actions(self) -> int:
        return self.legal

    @property
    def max_plies(self) -> int:
        return self.depth

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (1,)

    @functools.cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """int32 [M, K]: the legal actions, ascending; float32 [M]: the result for player 0 if the game ends there."""
        generator = np.random.default_rng(0)
        nodes = self.width * (self.depth + 1)
        actions = np.stack([generator.permutation(self.actions)[: self.legal] for _ in range(nodes)])
        return np.sort(actions, axis=1).astype(np.int32), generator.integers(-1, 2, nodes).astype(np.float32)

    def init(self, key: chex.PRNGKey) -> LayeredState:
        del key
        return LayeredState(jnp.int32(0), jnp.int32(0), jnp.bool_(False), jnp.zeros(2, jnp.float32))

    def step(self, state: LayeredState, action: chex.Array) -> LayeredState:
        actions, results = self._tables
        layer, column = state.node // self.width, state.node % self.width
        legal = ~state.terminated & jnp.any(jnp.asarray(actions)[state.node] == action)
        # Any fixed rule works that spreads the children over the next layer.
        child = (layer + 1) * self.width + (column * 31 + action * 17 + 1) % self.width
        ended = layer + 1 == self.depth
        result = jnp.where(legal & ended, jnp.asarray(results)[child], 0.0)
        return LayeredState(
            node=jnp.where(legal, child, state.node),
            current_player=jnp.where(legal, 1 - state.current_player, state.current_player),
            terminated=state.terminated | (legal & ended),
            rewards=jnp.stack([result, -result]),
        )

    def legal_action_mask(self, state: LayeredState) -> chex.Array:
        return jnp.zeros(self.actions, bool).at[self._legal_actions_of(state)].set(~state.terminated)

    def legal_slots(self, state: LayeredState) -> tuple[chex.Array, chex.Array]:
        valid = jnp.broadcast_to(~state.terminated, (self.legal,))
        return jnp.where(valid | (self.legal == self.actions), self._legal_actions_of(state), 0), valid

    def _legal_actions_of(self, state: LayeredState) -> chex.Array:
        """int32 [K]: the legal actions; if K == A, slot a is action a."""
        return jnp.asarray(self._tables[0])[state.node]

    def observe(self, state: LayeredState) -> chex.Array:
        return state.node.astype(jnp.float32)[None]
