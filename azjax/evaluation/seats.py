"""A player's seats in games that are played side by side: its memory of each game, and the moves that it makes.

Axis letters: `G` games played side by side.
"""

import abc
import functools
import time
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Int, Int32, Key, PRNGKeyArray, PyTree

from azjax.evaluation.host_games import rows_of
from azjax.evaluation.players import Player, Policy, act, observe, start_memory
from azjax.games.game import State

_SMALLEST_BUCKET = 16  # of games that are played side by side

PART = 32
"""Positions that a player without a network searches side by side on one device."""

Move: TypeAlias = int | str
"""An action, or why the game ends without one: `RESIGNATION`, or the reason why a player forfeits it."""

RESIGNATION = "resignation"
"""The end of a game that its loser gives up, which is a result like any other."""

SeatNumbers: TypeAlias = Int[np.ndarray, "G"]
"""0 where a player is player 0, 1 where it is player 1."""

Rows: TypeAlias = Int[np.ndarray, "n"]
"""The numbers of some of the games."""


class Seats(abc.ABC):
    """The seats of one player, in one batch of games after another.

    Attributes:
      seconds: of each move that was made for one position alone; compilation is no part of them.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []

    @abc.abstractmethod
    def begin(self, seats: SeatNumbers, starts: State, states: State) -> None:
        """Begins G new games.

        Args:
          seats: of the player.
          starts: NumPy leaves [G, ...]; the starts of the games.
          states: NumPy leaves [G, ...]; the positions after the opening.
        """

    @abc.abstractmethod
    def choose(self, key: PRNGKeyArray, states: State, rows: Rows, played: Sequence[Sequence[int]]) -> Sequence[Move]:
        """The player's moves in the games `rows`; `played` are all past actions, by game."""

    def observe(self, actions: Int32[np.ndarray, "G"]) -> None:  # noqa: B027
        """Notes what was played in all games, by either player."""

    def close(self) -> None:  # noqa: B027
        """Releases what the seats hold."""


class PolicySeats(Seats):
    """The seats of a policy, which keeps its memory of all games on the device."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self._player, self._is_compiled = player, False
        self._memory: PyTree = None

    def begin(self, seats: SeatNumbers, starts: State, states: State) -> None:
        self._memory = start_memory(self._player, states)
        if len(seats) == 1 and not self._is_compiled:
            self.choose(jax.random.key(0), states, np.arange(1), [[]])
            self.seconds.clear()
            self._memory, self._is_compiled = start_memory(self._player, states), True

    def choose(self, key: PRNGKeyArray, states: State, rows: Rows, played: Sequence[Sequence[int]]) -> Sequence[Move]:
        """Pads the rows to a power of two, so that few sizes are compiled.

        The time of a move is noted where one game is played at a time. Many rows of a player without a network are
        split over the devices: its search runs on one core of each. The parts are the same on any number of devices,
        and so are the moves.
        """
        if len(rows) > PART and self._player.params is None and self._memory is None:
            moves: list[int] = choose_in_parts(self._player, key, rows_of(states, rows)).tolist()
            return moves
        began, num_games = time.perf_counter(), len(states.terminated)
        bucket = max(min(_SMALLEST_BUCKET, _power_of_two(num_games)), _power_of_two(len(rows)))
        padded = np.resize(rows, bucket)
        batch = jax.tree.map(jnp.asarray, rows_of(states, padded))
        actions, _, memory = act(self._player, key, batch, _read_rows(self._memory, padded))
        # The memory of padding rows is written beyond the last game, and so dropped.
        index = np.where(np.arange(bucket) < len(rows), padded, num_games)
        self._memory = _write_rows(self._memory, index, memory)
        chosen: list[int] = np.asarray(actions)[: len(rows)].tolist()
        if num_games == 1:
            self.seconds.append(time.perf_counter() - began)
        return chosen

    def observe(self, actions: Int32[np.ndarray, "G"]) -> None:
        self._memory = observe(self._player, self._memory, actions)

    def close(self) -> None:
        self._memory = None


def choose_in_parts(player: Player, key: PRNGKeyArray, states: State) -> Int32[np.ndarray, "n"]:
    """The moves of a player without memory in n positions, `PART` of them on each device at a time."""
    count, devices = len(states.terminated), jax.local_device_count()
    num_parts = -(-count // PART)
    keys = jax.random.split(key, num_parts)
    moves = []
    for first in range(0, num_parts, devices):
        part = np.minimum(first + np.arange(devices), num_parts - 1)
        rows = np.minimum(first * PART + np.arange(devices * PART), count - 1)
        moves.append(np.asarray(_act_on_each_device(player.policy, player.params, keys[part], rows_of(states, rows))))
    return np.concatenate(moves)[:count]


@functools.partial(jax.jit, static_argnums=0)
def _act_on_each_device(policy: Policy, params: PyTree, keys: Key[Array, "D"], states: State) -> Int32[Array, "P"]:
    def on_one(params: PyTree, keys: Key[Array, "1"], states: State) -> Int32[Array, "P"]:
        return act(Player("", policy, params), keys[0], states)[0]

    mesh = jax.make_mesh((len(keys),), ("part",), axis_types=(AxisType.Auto,), devices=jax.local_devices())
    whole, split = PartitionSpec(), PartitionSpec("part")
    # Loops start from constants, which are the same on all devices, and go on with what is not.
    on_each = jax.shard_map(on_one, mesh=mesh, in_specs=(whole, split, split), out_specs=split, check_vma=False)
    actions: Array = on_each(params, keys, states)
    return actions


def _power_of_two(count: int) -> int:
    """The smallest that is not below a count of 1 or more."""
    return 1 << (count - 1).bit_length()


@jax.jit
def _read_rows(memory: PyTree, rows: Int[Array, "n"]) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[rows], memory)


@jax.jit
def _write_rows(memory: PyTree, rows: Int[Array, "n"], new: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf, new_leaf: leaf.at[rows].set(new_leaf, mode="drop"), memory, new)
