"""Solved games, and small games for tests: holes in the table of actions, two moves in a row, position numbers."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.core.pytree import pytree_dataclass
from azjax.evaluation.solver import solve
from azjax.games.game import Game

MAX_STONES = 3  # in a heap


@pytree_dataclass
class NimState:
    heaps: chex.Array
    ply: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Nim(Game):
    """Take 1 to 3 stones from one heap; the player who takes the last stone wins. Action = 3 * heap + stones - 1.

    Attributes:
      heaps: stones in each heap, at most 3.
      turn: moves in a row of each player, but for the first player's first turn of one.
      counts_plies: the state holds the number of moves made; else (turn 1 alone) positions of different plies meet.
    """

    heaps: tuple[int, ...] = (1, 2, 3)
    turn: int = 1
    counts_plies: bool = True
    name: str = "nim"

    @property
    def num_actions(self):
        return MAX_STONES * len(self.heaps)

    @property
    def max_legal_actions(self):
        return sum(self.heaps)

    @property
    def max_plies(self):
        return sum(self.heaps)

    @property
    def observation_shape(self):
        return (len(self.heaps),)

    def init(self, key):
        del key
        zero, rewards = jnp.int32(0), jnp.zeros(2, jnp.float32)
        return NimState(jnp.array(self.heaps, jnp.int32), zero, zero, jnp.bool_(False), rewards)

    def step(self, state, action):
        action = jnp.asarray(action, jnp.int32)
        in_range = (action >= 0) & (action < self.num_actions)
        legal = in_range & self.legal_action_mask(state)[jnp.clip(action, 0, self.num_actions - 1)]
        taken = jnp.where(jnp.arange(len(self.heaps)) == action // MAX_STONES, action % MAX_STONES + 1, 0)
        heaps = jnp.where(legal, state.heaps - taken, state.heaps)
        ply = state.ply + legal
        following = (ply + self.turn - 1) // self.turn % 2 if self.counts_plies else 1 - state.current_player
        sign = 1.0 - 2.0 * jnp.abs(jnp.arange(2) - state.current_player).astype(jnp.float32)
        won = legal & jnp.all(heaps == 0)
        return NimState(
            heaps=heaps,
            ply=ply if self.counts_plies else state.ply,
            current_player=jnp.where(legal, following, state.current_player),
            terminated=state.terminated | won,
            rewards=jnp.where(won, sign, 0.0),
        )

    def legal_action_mask(self, state):
        return (state.heaps[:, None] > jnp.arange(MAX_STONES)[None]).reshape(-1)

    def observe(self, state):
        return state.heaps.astype(jnp.float32)


class NumberedNim(Nim):
    """Nim whose positions are numbered by heaps, then by ply or, where plies are not counted, by player."""

    @property
    def num_position_numbers(self):
        return (MAX_STONES + 1) ** len(self.heaps) * (self.max_plies + 1)

    def position_number(self, state):
        number = state.ply if self.counts_plies else state.current_player
        for heap in range(len(self.heaps)):
            number = number * (MAX_STONES + 1) + state.heaps[heap]
        return number.astype(jnp.uint32)

    def from_position_number(self, number):
        number, heaps = jnp.asarray(number).astype(jnp.int32), []
        for _ in self.heaps:
            number, heap = number // (MAX_STONES + 1), number % (MAX_STONES + 1)
            heaps.insert(0, heap)
        return NimState(
            heaps=jnp.stack(heaps),
            ply=number if self.counts_plies else jnp.int32(0),
            current_player=(number + self.turn - 1) // self.turn % 2 if self.counts_plies else number,
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )


@pytree_dataclass
class RowState:
    cells: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class NumberedRow(Game):
    """Connect 2 on a row of cells, 0 empty, 1 and 2 the players' stones, numbered in base 3: a game of draws."""

    num_cells: int = 4
    name: str = "row"

    @property
    def num_actions(self):
        return self.num_cells

    max_legal_actions = max_plies = num_actions

    @property
    def observation_shape(self):
        return (self.num_cells,)

    def init(self, key):
        del key
        return RowState(jnp.zeros(self.num_cells, jnp.int32), jnp.int32(0), jnp.bool_(False), jnp.zeros(2, jnp.float32))

    def step(self, state, action):
        placed = (jnp.arange(self.num_cells) == action) & self.legal_action_mask(state)
        cells = jnp.where(placed, state.current_player + 1, state.cells)
        legal = jnp.any(placed)
        won = legal & jnp.any((cells[1:] == cells[:-1]) & (cells[1:] == state.current_player + 1))
        sign = 1.0 - 2.0 * jnp.abs(jnp.arange(2) - state.current_player).astype(jnp.float32)
        return RowState(
            cells=cells,
            current_player=jnp.where(legal, 1 - state.current_player, state.current_player),
            terminated=state.terminated | won | (legal & jnp.all(cells > 0)),
            rewards=jnp.where(won, sign, 0.0),
        )

    def legal_action_mask(self, state):
        return (state.cells == 0) & ~state.terminated

    def observe(self, state):
        return state.cells.astype(jnp.float32)

    @property
    def num_position_numbers(self):
        return 3**self.num_cells

    def position_number(self, state):
        return jnp.sum(state.cells.astype(jnp.uint32) * self._place_values, dtype=jnp.uint32)

    def from_position_number(self, number):
        cells = (jnp.asarray(number, jnp.uint32) // self._place_values % jnp.uint32(3)).astype(jnp.int32)
        return RowState(
            cells=cells,
            current_player=jnp.sum(cells > 0, dtype=jnp.int32) % 2,
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    @property
    def _place_values(self):
        return np.uint32(3) ** np.arange(self.num_cells, dtype=np.uint32)


@functools.cache
def cached_solution(game):
    return solve(game)


@pytest.fixture(scope="session")
def nim():
    """`nim(heaps, turn, counts_plies)` makes a game."""
    return Nim


@pytest.fixture(scope="session")
def numbered_nim():
    """The same game with numbers."""
    return NumberedNim


@pytest.fixture(scope="session")
def numbered_row():
    """`numbered_row(cells)` makes a game."""
    return NumberedRow


@pytest.fixture(scope="session")
def solution_of():
    """`solution_of(game)`: the solution of a game, made once; also by the name of a registered one."""
    return lambda game: cached_solution(azjax.games.make(game) if isinstance(game, str) else game)


@pytest.fixture(scope="session")
def positions_of():
    """`positions_of(game, texts)`: the positions written so, as one batch."""
    return lambda game, *texts: jax.tree.map(lambda *leaves: jnp.stack(leaves), *(game.from_text(t) for t in texts))
