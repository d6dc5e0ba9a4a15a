"""Players that search for a time and not for a number of simulations, one position after another."""

import dataclasses
import time
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.host_games import rows_of
from azjax.evaluation.players import Player, TimedPolicy
from azjax.evaluation.searching_players import for_seconds
from azjax.evaluation.seats import Move, Rows, SeatNumbers, Seats
from azjax.games.game import State
from azjax.search.budget import check_seconds

_WARM_UP_SECONDS = 1e-3


@dataclasses.dataclass(frozen=True)
class TimedPlayer:
    """A player that searches each position, from an empty tree, for this many seconds.

    Attributes:
      name: for display.
      player: with a `TimedPolicy`.
      seconds: of each move, above 0; see `azjax.search.search_within`.

    Raises:
      InputError: a player that cannot search for a time, or seconds of 0 and below.
    """

    name: str
    player: Player
    seconds: float

    def __post_init__(self) -> None:
        if not isinstance(self.player.policy, TimedPolicy):
            raise InputError(f"{self.name} cannot search for a time")
        check_seconds(self.seconds)


class TimedSeats(Seats):
    """The seats of a timed player. Its search is compiled before the first move, outside of its time."""

    def __init__(self, player: TimedPlayer) -> None:
        super().__init__()
        self._player = dataclasses.replace(player, player=for_seconds(player.player, player.seconds))
        self._is_compiled = False

    def begin(self, seats: SeatNumbers, starts: State, states: State) -> None:
        if not self._is_compiled:
            self._search(jax.random.key(0), states, 0, _WARM_UP_SECONDS)
            self._is_compiled = True

    def choose(self, key: PRNGKeyArray, states: State, rows: Rows, played: Sequence[Sequence[int]]) -> Sequence[Move]:
        """The moves, one after the other."""
        moves = []
        for row in rows.tolist():
            began = time.perf_counter()
            moves.append(self._search(jax.random.fold_in(key, row), states, row, self._player.seconds))
            self.seconds.append(time.perf_counter() - began)
        return moves

    def _search(self, key: PRNGKeyArray, states: State, row: int, seconds: float) -> int:
        player = self._player.player
        assert isinstance(player.policy, TimedPolicy)
        one = rows_of(states, slice(row, row + 1))
        return int(np.asarray(player.policy.search_within(player.params, key, one, seconds).action)[0])
