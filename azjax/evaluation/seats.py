"""A player's seats in games that are played side by side: its memory of each game, and the moves that it makes.

Axis letters: `G` games played side by side.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, PRNGKeyArray, PyTree

from azjax.evaluation.external import ExternalPlayer, ExternalSeats
from azjax.evaluation.openspiel import OpenSpielPlayer, OpenSpielSeats
from azjax.evaluation.players import Player, act, observe, start_memory
from azjax.games.game import AnyGame, State

_SMALLEST_BUCKET = 16

Contestant = Player | ExternalPlayer | OpenSpielPlayer
"""A player that can take part in a match."""


@runtime_checkable
class Seats(Protocol):
    """The seats of one player, in one batch of games after another."""

    def begin(self, seats: Int[np.ndarray, "G"], starts: State, states: State) -> None:
        """Begins G new games.

        Args:
          seats: 0 where it is player 0.
          starts: NumPy leaves [G, ...]; the starts of the games.
          states: NumPy leaves [G, ...]; the positions after the opening.
        """

    def choose(
        self, key: PRNGKeyArray, states: State, rows: Int[np.ndarray, "n"], played: Sequence[Sequence[int]]
    ) -> Sequence[int | str]:
        """The actions in the games `rows`, or why the player forfeits one; `played` are all past actions."""

    def observe(self, actions: Int32[np.ndarray, "G"]) -> None:
        """Notes what was played in all games, by either player."""

    def close(self) -> None:
        """Releases what the seats hold."""


def make_seats(player: Contestant, game: AnyGame) -> Seats:
    """The player's seats.

    Raises:
      RuntimeError: a program or a bot that cannot play the game.
    """
    if isinstance(player, ExternalPlayer):
        return ExternalSeats(player, game)
    return OpenSpielSeats(player, game) if isinstance(player, OpenSpielPlayer) else _PolicySeats(player)


class _PolicySeats:
    """The seats of a policy, which keeps its memory of all games on the device."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._memory: PyTree = None

    def begin(self, seats: Int[np.ndarray, "G"], starts: State, states: State) -> None:
        del seats, starts
        self._memory = start_memory(self._player, states)

    def choose(
        self, key: PRNGKeyArray, states: State, rows: Int[np.ndarray, "n"], played: Sequence[Sequence[int]]
    ) -> Sequence[int | str]:
        """Pads the rows to a power of two, so that few sizes are compiled."""
        del played
        bucket = max(_SMALLEST_BUCKET, 1 << (len(rows) - 1).bit_length())
        padded = np.resize(rows, bucket)
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[padded]), states)
        actions, _, memory = act(self._player, key, batch, _read_rows(self._memory, padded))
        # The memory of padding rows is written beyond the last game, and so dropped.
        index = np.where(np.arange(bucket) < len(rows), padded, len(states.terminated))
        self._memory = _write_rows(self._memory, index, memory)
        chosen: list[int] = np.asarray(actions)[: len(rows)].tolist()
        return chosen

    def observe(self, actions: Int32[np.ndarray, "G"]) -> None:
        self._memory = observe(self._player, self._memory, actions)

    def close(self) -> None:
        self._memory = None


@jax.jit
def _read_rows(memory: PyTree, rows: Int[Array, "n"]) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[rows], memory)


@jax.jit
def _write_rows(memory: PyTree, rows: Int[Array, "n"], new: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf, new_leaf: leaf.at[rows].set(new_leaf, mode="drop"), memory, new)
