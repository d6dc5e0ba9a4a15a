"""Games that were played, as a book: which moves were played in a position, and how these games ended."""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation import GameRecord
from azjax.games.game import AnyGame, State
from azjax.games.protocols import TextGame, action_to_text


class BookMove(NamedTuple):
    """A move of a position.

    Attributes:
      action: its number.
      move: its text.
      games: how often it was played.
      points: the mean result for the player who played it, 0..1; a draw is a half.
    """

    action: int
    move: str
    games: int
    points: float


class Book:
    """The moves of games, by position. Games meet in equal positions, whatever led there.

    Random moves of openings do not count, and neither do games without a result.

    Args:
      game: the game of all records.
      records: the games.

    Raises:
      InputError: a game by other rules.
    """

    def __init__(self, game: AnyGame, records: Iterable[GameRecord]) -> None:
        self._game, self.games = game, 0
        self._results: dict[str | bytes, dict[int, list[float]]] = {}
        for number, record in enumerate(records, 1):
            if record.game != game:
                raise InputError(f"game {number} is of {record.game}, not of {game}")
            if record.rewards is None:
                continue
            self.games += 1
            states, actions = record.replay()
            for state, action in list(zip(states, actions, strict=False))[record.opening_plies :]:
                points = (1 + float(np.sign(record.rewards[int(state.current_player)]))) / 2
                self._results.setdefault(self._key(state), {}).setdefault(action, []).append(points)

    def moves(self, state: State) -> list[BookMove]:
        """The moves of a position, the most frequent first."""
        results = self._results.get(self._key(state), {})
        found = [
            BookMove(action, action_to_text(self._game, state, action), len(points), float(np.mean(points)))
            for action, points in results.items()
        ]
        return sorted(found, key=lambda move: (-move.games, move.action))

    def _key(self, state: State) -> str | bytes:
        """The same for equal positions: their text, which has no history and counts no plies, or else their arrays."""
        if isinstance(self._game, TextGame):
            return self._game.to_text(state)
        return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state))
