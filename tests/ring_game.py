"""A game in which positions come back, with its endings, and its values by a plain program."""

import dataclasses
import itertools

import chex
import jax
import jax.numpy as jnp

from azjax.core.pytree import pytree_dataclass
from azjax.games.endings import Endings, EndingsGame, EndingsPart
from azjax.games.game import Game

# A game on a ring of cells, in which a token goes round for ever unless a player can force it to his goal.
CELLS, LIVES = 15, 2
STEPS = ((3, 1), (-1, 1))  # of player 0 and of player 1
GOALS = (0, 3)  # who brings the token there, whoever moves, wins for the owner of the goal
TRAP = 4  # the token loses a life there; without lives the game is drawn


@pytree_dataclass
class RingState:
    cell: chex.Array
    lives: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Ring(Game, EndingsGame):
    name: str = "ring"
    num_actions = max_legal_actions = 2
    max_plies = 100
    observation_shape = (1,)

    def state(self, cell, lives, player):
        return RingState(cell, lives, player, lives == 0, jnp.zeros(2, jnp.float32))

    def init(self, key):
        del key
        return self.state(jnp.int32(1), jnp.int32(LIVES), jnp.int32(0))

    def step(self, state, action):
        cell = (state.cell + jnp.array(STEPS)[state.current_player, action]) % CELLS
        lives = state.lives - (cell == TRAP)
        result = jnp.where(cell == GOALS[0], 1.0, jnp.where(cell == GOALS[1], -1.0, 0.0))
        return RingState(
            cell=jnp.where(state.terminated, state.cell, cell),
            lives=jnp.where(state.terminated, state.lives, lives),
            current_player=jnp.where(state.terminated, state.current_player, 1 - state.current_player),
            terminated=state.terminated | (result != 0) | (lives == 0),
            rewards=jnp.where(state.terminated, 0.0, result) * jnp.array([1.0, -1.0]),
        )

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~state.terminated, (2,))

    def observe(self, state):
        return state.cell[None].astype(jnp.float32)

    def endings(self, pieces):
        return RingEndings(pieces)


@dataclasses.dataclass(frozen=True)
class RingEndings(Endings):
    """A number is 2 * CELLS * (lives - 1) + CELLS * player + cell."""

    pieces: int

    @property
    def parts(self):
        return tuple(
            EndingsPart(f"{lives + 1} lives", player, lives, first, first + CELLS, 1, (1,) * CELLS)
            for lives, player in itertools.product(range(self.pieces), range(2))
            for first in [CELLS * (2 * lives + player)]
        )

    @property
    def num_position_numbers(self):
        return 2 * CELLS * self.pieces

    def has_values_of(self, other):
        return isinstance(other, RingEndings) and other.pieces == self.pieces

    def position_number(self, state):
        number = CELLS * (2 * (state.lives - 1) + state.current_player) + state.cell
        is_one = (state.lives > 0) & (state.cell != GOALS[0]) & (state.cell != GOALS[1])
        return jnp.where(is_one, number, self.num_position_numbers).astype(jnp.uint32)

    def from_position_number(self, number):
        digits, cell = jnp.divmod(number.astype(jnp.int32), CELLS)
        state = Ring().state(cell, digits // 2 + 1, digits % 2)
        return dataclasses.replace(state, terminated=(cell == GOALS[0]) | (cell == GOALS[1]))

    def as_first_position(self, state):
        return state

    def image_numbers(self, number):
        return number[None]

    def legal_slots(self, state, pieces):
        return jnp.arange(2, dtype=jnp.int32), Ring().legal_action_mask(state)

    def step(self, state, action):
        return Ring().step(state, action)

    def predecessors(self, state, pieces):
        mover = 1 - state.current_player
        cells = (state.cell - jnp.array(STEPS)[mover]) % CELLS
        states = jax.vmap(lambda cell: Ring().state(cell, state.lives, mover))(cells)
        return jax.vmap(self.position_number)(states)


def ring_values():
    """By (lives, player, cell): value for the side to move and plies, found without the package."""
    values = {}
    for lives in range(1, LIVES + 1):
        places = [(lives, p, c) for p in range(2) for c in range(CELLS) if c not in GOALS]
        while True:
            found = {}
            for place in places:
                _, player, cell = place
                options = []
                for step in STEPS[player]:
                    to = (cell + step) % CELLS
                    left = lives - (to == TRAP)
                    if to in GOALS:
                        options.append((1 if GOALS.index(to) == player else -1, 1))
                    elif left == 0:
                        options.append((0, 0))
                    else:
                        value, plies = values.get((left, 1 - player, to), (0, 0))
                        options.append((-value, plies + 1 if value else 0))
                found[place] = max(options, key=lambda each: (each[0], -each[0] * each[1]))
            if all(values.get(place, (0, 0)) == found[place] for place in places):
                break
            values |= found
    return values
