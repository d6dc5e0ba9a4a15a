"""Solved games, and a game that m,n,k games leave out: holes in its table of actions, two moves in a row."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import pytest

import azjax.games
from azjax.evaluation.solver import solve
from azjax.games.game import Game, state_dataclass

MOST = 3  # stones in a heap


@state_dataclass
class NimState:
    heaps: chex.Array
    ply: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Nim(Game):
    """Take 1 to 3 stones from one heap; who takes the last stone wins. Action = 3 * heap + stones - 1.

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
        return MOST * len(self.heaps)

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
        taken = jnp.where(jnp.arange(len(self.heaps)) == action // MOST, action % MOST + 1, 0)
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
        return (state.heaps[:, None] > jnp.arange(MOST)[None]).reshape(-1)

    def observe(self, state):
        return state.heaps.astype(jnp.float32)


@functools.cache
def cached_solution(game):
    return solve(game)


@pytest.fixture(scope="session")
def nim():
    """`nim(heaps, turn, counts_plies)` makes a game."""
    return Nim


@pytest.fixture(scope="session")
def solution_of():
    """`solution_of(game)`: the solution of a game, made once; also by the name of a registered one."""
    return lambda game: cached_solution(azjax.games.make(game) if isinstance(game, str) else game)


@pytest.fixture(scope="session")
def positions_of():
    """`positions_of(game, texts)`: the positions written so, as one batch."""
    return lambda game, *texts: jax.tree.map(lambda *leaves: jnp.stack(leaves), *(game.from_text(t) for t in texts))
