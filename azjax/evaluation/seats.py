"""A player's seats in games that are played side by side: what it remembers of each, and what it is told.

Axis letters: `B` games played side by side.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.evaluation.external import ExternalPlayer, ExternalSeats
from azjax.evaluation.openspiel import OpenSpielPlayer, OpenSpielSeats
from azjax.evaluation.players import Player, act, observe, start_memory
from azjax.games.game import Game

_SMALLEST_BUCKET = 16


@runtime_checkable
class Seats(Protocol):
    """The seats of one player, in one batch of games after another."""

    def begin(self, seats: np.ndarray, starts: Any, states: Any) -> None:
        """Sits down at B new games.

        Args:
          seats: int [B]; 0 where it is player 0.
          starts: NumPy leaves [B, ...]; where the games begin.
          states: NumPy leaves [B, ...]; where they are, after the opening.
        """

    def choose(self, key: chex.PRNGKey, states: Any, rows: np.ndarray, played: Sequence[Sequence[int]]) -> list:
        """The player's actions in the games `rows`, or why it breaks one off; played are the actions of all so far."""

    def observe(self, actions: np.ndarray) -> None:
        """Sees what was played in all games, int32 [B], by whoever played it."""

    def close(self) -> None:
        """Leaves for good."""


Contestant = Player | ExternalPlayer | OpenSpielPlayer
"""Who can play in a match."""


def sit_down(player: Contestant, game: Game) -> Seats:
    """The player's seats.

    Raises:
      RuntimeError: a program or a bot that cannot play the game.
    """
    if isinstance(player, ExternalPlayer):
        return ExternalSeats(player, game)
    return OpenSpielSeats(player, game) if isinstance(player, OpenSpielPlayer) else _PolicySeats(player)


class _PolicySeats:
    """Those of a policy: its memory of all games, on the device."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._memory: Any = None

    def begin(self, seats: np.ndarray, starts: Any, states: Any) -> None:
        del seats, starts
        self._memory = start_memory(self._player, states)

    def choose(self, key: chex.PRNGKey, states: Any, rows: np.ndarray, played: Sequence[Sequence[int]]) -> list:
        """Rows are padded to a power of two so that few sizes are compiled."""
        del played
        bucket = max(_SMALLEST_BUCKET, 1 << (len(rows) - 1).bit_length())
        padded = np.resize(rows, bucket)
        asked = jax.tree.map(lambda leaf: jnp.asarray(leaf[padded]), states)
        actions, _, thought = act(self._player, key, asked, _take(self._memory, padded))
        # What was thought in the rows of the padding falls beyond the last game.
        put = np.where(np.arange(bucket) < len(rows), padded, len(states.terminated))
        self._memory = _put(self._memory, put, thought)
        return np.asarray(actions)[: len(rows)].tolist()

    def observe(self, actions: np.ndarray) -> None:
        self._memory = observe(self._player, self._memory, actions)

    def close(self) -> None:
        self._memory = None


@jax.jit
def _take(memory: Any, rows: chex.Array) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], memory)


@jax.jit
def _put(memory: Any, rows: chex.Array, thought: Any) -> Any:
    return jax.tree.map(lambda leaf, new: leaf.at[rows].set(new, mode="drop"), memory, thought)
