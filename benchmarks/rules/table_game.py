"""A game of random tables that exercises every rule of the contract. Plain Python can read the same tables.

Nodes are in layers, and a step leads one or two layers down, so that transpositions occur and games end. A player may
move twice in a row, and rewards also come before the end of the game. Numbers are real, or multiples of 1/8, whose sums
are exact in float32 and whose scores are often equal. Axis letters: `M` nodes, `A` actions.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.pytree import pytree_dataclass
from azjax.games.game import Game
from benchmarks.searches import puct


class Tables(NamedTuple):
    """The rules and an evaluation, by node.

    Attributes:
      children: int32 [M, A]; the node after an action.
      rewards: float32 [M, A]; the reward of an action for player 0.
      player: int32 [M]; the player to move.
      terminal: bool [M]; the game is over.
      legal: bool [M, A]; all False at terminal nodes.
      prior_logits: float32 [M, A]; integers or real numbers.
      values: float32 [M]; values in [-1, 1], for the player to move.
    """

    children: np.ndarray
    rewards: np.ndarray
    player: np.ndarray
    terminal: np.ndarray
    legal: np.ndarray
    prior_logits: np.ndarray
    values: np.ndarray


@pytree_dataclass
class TableState:
    """See `azjax.games.game.State`.

    Attributes:
      node: int32 []; the node of the game.
    """

    node: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class TableGame(Game):
    """A game whose rules are random tables.

    Attributes:
      seed: seed of the tables.
      width: number of nodes of a layer.
      depth: number of layers below the first one.
      actions: A, number of actions.
      slots: K <= A, largest number of legal actions.
      real: rewards, values and logits are real numbers.
    """

    seed: int
    width: int
    depth: int
    actions: int
    slots: int
    real: bool = False
    name: str = "table"

    @property
    def num_actions(self) -> int:
        return self.actions

    @property
    def max_legal_actions(self) -> int:
        return self.slots

    @property
    def num_nodes(self) -> int:
        return self.width * (self.depth + 1)

    @property
    def max_plies(self) -> int:
        return self.depth

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def tables(self) -> Tables:
        return _tables(self.seed, self.width, self.depth, self.actions, self.slots, self.real)

    def init(self, key: chex.PRNGKey) -> TableState:
        del key
        return self.state_at(jnp.int32(0))

    def state_at(self, node: Any) -> TableState:
        """The states at `node`, int32 [...]; every leaf has its shape as leading axes."""
        node = jnp.asarray(node, jnp.int32)
        player, terminal = jnp.asarray(self.tables.player)[node], jnp.asarray(self.tables.terminal)[node]
        return TableState(node, player, terminal, jnp.zeros((*node.shape, 2), jnp.float32))

    def step(self, state: TableState, action: chex.Array) -> TableState:
        in_range = (action >= 0) & (action < self.num_actions)
        action = jnp.clip(action, 0, self.num_actions - 1)
        legal = in_range & jnp.asarray(self.tables.legal)[state.node, action]
        node = jnp.where(legal, jnp.asarray(self.tables.children)[state.node, action], state.node)
        reward = jnp.where(legal, jnp.asarray(self.tables.rewards)[state.node, action], 0.0)
        return dataclasses.replace(self.state_at(node), rewards=jnp.stack([reward, -reward]))

    def legal_action_mask(self, state: TableState) -> chex.Array:
        return jnp.asarray(self.tables.legal)[state.node]

    def observe(self, state: TableState) -> chex.Array:
        return state.node.astype(jnp.float32)[None]


@functools.cache
def _tables(seed: int, width: int, depth: int, num_actions: int, max_legal_actions: int, real: bool) -> Tables:
    generator = np.random.default_rng(seed)
    num_nodes = width * (depth + 1)
    shape = (num_nodes, num_actions)
    layer = np.arange(num_nodes) // width
    terminal = (layer == depth) | (generator.random(num_nodes) < 0.15)
    terminal[0] = False
    player = generator.integers(0, 2, num_nodes).astype(np.int32)
    player[0] = 0  # player 0 moves first
    num_legal = generator.integers(1, max_legal_actions + 1, num_nodes)
    num_legal[0] = max_legal_actions  # some node reaches the bound
    rank = generator.random(shape).argsort(axis=1).argsort(axis=1)
    child_layer = np.minimum(layer[:, None] + generator.integers(1, 3, shape), depth)

    def numbers(shape: Any) -> np.ndarray:
        return generator.uniform(-1, 1, shape) if real else generator.integers(-8, 9, shape) / 8

    def logits(shape: Any) -> np.ndarray:
        return generator.normal(0, 1.5, shape) if real else generator.integers(-2, 4, shape)

    return Tables(
        children=(child_layer * width + generator.integers(0, width, shape)).astype(np.int32),
        rewards=(numbers(shape) * generator.integers(0, 2, shape)).astype(np.float32),
        player=player,
        terminal=terminal,
        legal=(rank < num_legal[:, None]) & ~terminal[:, None],
        prior_logits=logits(shape).astype(np.float32),
        values=numbers(num_nodes).astype(np.float32),
    )


class Position(NamedTuple):
    """A plain-Python position; see `benchmarks.searches.puct.Position`."""

    node: int
    player: int
    terminal: bool
    rewards: tuple[float, float] = (0.0, 0.0)


class TableRules:
    """The rules of a `TableGame` in plain Python, read from the same tables."""

    def __init__(self, game: TableGame):
        self._tables = game.tables
        self._num_slots = game.max_legal_actions
        self._compact = game.max_legal_actions < game.num_actions

    def position_at(self, node: int) -> Position:
        return Position(int(node), int(self._tables.player[node]), bool(self._tables.terminal[node]))

    def slots(self, position: Position) -> list[int]:
        """The legal actions, ascending, then -1 in empty slots; if K == A, slot a is action a, or -1."""
        legal = self._tables.legal[position.node]
        if not self._compact:
            return [action if legal[action] else -1 for action in range(self._num_slots)]
        actions = np.flatnonzero(legal).tolist()
        return actions + [-1] * (self._num_slots - len(actions))

    def step(self, position: Position, action: int) -> Position:
        reward = float(self._tables.rewards[position.node, action])
        child = self.position_at(self._tables.children[position.node, action])
        return child._replace(rewards=(reward, -reward))


def node_of(state: TableState) -> chex.Array:
    """int32: the row of `prior_logits` and `values` for `state`."""
    return state.node


def slot_priors(game: TableGame) -> np.ndarray:
    """float32 [M, K]: the softmax of `prior_logits` over the legal slots of each node; NaN at terminal nodes."""
    rules = TableRules(game)
    slots = np.array([rules.slots(rules.position_at(node)) for node in range(game.num_nodes)])
    logits = np.take_along_axis(game.tables.prior_logits, np.maximum(slots, 0), axis=1)
    return np.asarray(jax.nn.softmax(jnp.where(slots >= 0, logits, -jnp.inf)))


def plain_search(
    game: TableGame, nodes: Any, num_simulations: int, c_puct: float = 1.25, leaves_per_step: int = 1
) -> list[puct.Result]:
    """The results of plain-Python searches from each of `nodes`, with the evaluations of the tables."""
    rules, priors, values = TableRules(game), slot_priors(game), game.tables.values

    def evaluate(position: Position) -> tuple[np.ndarray, float]:
        return priors[position.node], values[position.node]

    return [
        puct.search(
            rules, evaluate, rules.position_at(node), num_simulations, game.num_actions, c_puct, leaves_per_step
        )
        for node in nodes
    ]
