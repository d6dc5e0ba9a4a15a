"""The rules of any game, called for one state at a time with its whole history, and a table that evaluates positions.

A search over these rules is independent of batches, of packed positions and of the way a tree detects repetitions.
"""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.pytree import replace_fields
from azjax.games.game import Game
from azjax.games.protocols import without_history
from azjax.search import alphazero_policy, evaluators
from benchmarks.searches import puct

NUM_ROWS = 97  # rows of the table that evaluates positions
NUM_SIMULATIONS = 100


@dataclasses.dataclass(frozen=True)
class HashedPosition:
    """The row of the table, below `rows`, for a state: a hash of its position without history and rewards."""

    game: Game
    rows: int

    def __call__(self, state: Any) -> chex.Array:
        position = replace_fields(without_history(self.game, state), rewards=None)
        words = jnp.concatenate([leaf.reshape(-1).astype(jnp.uint32) for leaf in jax.tree.leaves(position)])
        weights = np.random.default_rng(0).integers(1 << 32, size=words.size, dtype=np.uint32)
        return (jnp.sum(words * weights, dtype=jnp.uint32) >> 16) % self.rows


@dataclasses.dataclass(frozen=True)
class Position:
    """A state with its rules and its evaluation; see `benchmarks.searches.puct.Position`.

    Attributes:
      actions: the action of each slot, -1 in empty slots.
      prior, value: see `benchmarks.searches.puct.Evaluate`.
    """

    state: Any
    player: int
    terminal: bool
    rewards: tuple[float, float]
    actions: list[int]
    prior: np.ndarray
    value: np.float32


class OneStateRules:
    """See `benchmarks.searches.puct.Rules`. `params`: prior logits float32 [rows, A] and values float32 [rows]."""

    def __init__(self, game: Game, params: tuple[np.ndarray, np.ndarray]):
        logits, values = (jnp.asarray(table) for table in params)
        self._start = game.init(jax.random.key(0))
        self._step = jax.jit(game.step)

        @jax.jit
        def look(state: Any) -> tuple:
            actions, valid = game.legal_slots(state)
            row = HashedPosition(game, len(values))(state)
            prior = jax.nn.softmax(jnp.where(valid, logits[row, actions], -jnp.inf))
            told = state.current_player, state.terminated, state.rewards, jnp.where(valid, actions, -1)
            return *told, prior, values[row]

        self._look = look

    def position_of(self, state: Any) -> Position:
        player, terminal, rewards, actions, prior, value = jax.device_get(self._look(state))
        return Position(state, int(player), bool(terminal), tuple(rewards.tolist()), actions.tolist(), prior, value)

    def slots(self, position: Position) -> list[int]:
        return position.actions

    def step(self, position: Position, action: int) -> Position:
        return self.position_of(self._step(position.state, jnp.int32(action)))

    def evaluate(self, position: Position) -> tuple[np.ndarray, np.float32]:
        return position.prior, position.value

    def after(self, actions: Iterable[int]) -> Position:
        """The position after these actions from the start."""
        return functools.reduce(self.step, actions, self.position_of(self._start))

    def after_random_plies(self, generator: np.random.Generator, plies: int) -> Position:
        """The position after `plies` random moves, or at the end of the game if it ends earlier."""
        position = self.after([])
        for _ in range(plies):
            if not position.terminal:
                position = self.step(position, generator.choice([a for a in position.actions if a >= 0]))
        return position


def batch_of(positions: Iterable[Position]) -> Any:
    """The states of the positions, every leaf [B, ...]."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[position.state for position in positions])


def assert_search_equals_the_plain_one(game, make_positions):
    """Asserts that `alphazero_policy` equals a plain search from each of the positions `make_positions(rules)`.

    Returns the results of the plain searches.
    """
    generator = np.random.default_rng(1)
    logits = generator.integers(-2, 4, (NUM_ROWS, game.num_actions)).astype(np.float32)
    params = logits, (generator.integers(-8, 9, NUM_ROWS) / 8).astype(np.float32)
    rules = OneStateRules(game, params)
    positions = make_positions(rules)
    result = alphazero_policy(
        params,
        jax.random.key(0),
        batch_of(positions),
        game=game,
        evaluator=evaluators.table(HashedPosition(game, NUM_ROWS)),
        num_simulations=NUM_SIMULATIONS,
    )
    expected = [
        puct.search(rules, rules.evaluate, position, NUM_SIMULATIONS, game.num_actions) for position in positions
    ]
    puct.assert_equal(jax.device_get(result), expected)
    return expected
