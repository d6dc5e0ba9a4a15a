"""Players that search for a time and not for a number of simulations, one position after another."""

import dataclasses
import time
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.host_games import rows_of
from azjax.evaluation.players import Player, RememberingPolicy, TimedPolicy
from azjax.evaluation.searching_players import for_seconds
from azjax.evaluation.seats import Move, Rows, SeatNumbers, Seats
from azjax.games.game import State
from azjax.search import SearchResult, Tree, advance
from azjax.search.budget import check_seconds

_ONE_CHUNK = 1e-9  # seconds that end with the first simulations


class TimedSearch:
    """Searches for a time in one game, one position after another.

    A player that remembers (`RememberingPolicy`) goes on in the tree of its last search, below the moves that were
    played since. Others begin with an empty tree.

    Args:
      player: from `for_seconds`.

    Raises:
      InputError: a player that cannot search for a time.
    """

    def __init__(self, player: Player) -> None:
        check_can_search_for_a_time(player)
        self.player, self._keeps = player, isinstance(player.policy, RememberingPolicy)
        self._tree: Tree | None = None
        self._played: tuple[int, ...] = ()

    def compile(self, states: State) -> None:
        """Compiles the search of the position [1, ...], so that it is no part of the time of a move."""
        played: tuple[int, ...] = ()
        for _ in range(2 if self._keeps else 1):  # the second one continues the tree of the first
            result = self.search(jax.random.key(0), states, played, _ONE_CHUNK)
            played = (*played, int(result.action[0]))
        self.forget()

    def forget(self) -> None:
        """Begins another game."""
        self._tree, self._played = None, ()

    def search(self, key: PRNGKeyArray, states: State, played: Sequence[int], seconds: float) -> SearchResult:
        """Searches the position `states` [1, ...].

        Args:
          key: consumed by the search.
          states: every leaf [1, ...].
          played: all actions of the game so far.
          seconds: for the search, and for what it keeps of the tree before.
        """
        began, tree = time.perf_counter(), self._kept(played)
        left = max(seconds - (time.perf_counter() - began), _ONE_CHUNK)
        assert isinstance(self.player.policy, TimedPolicy)
        result = self.player.policy.search_within(self.player.params, key, states, left, tree)
        if self._keeps:
            self._tree, self._played = result.tree, tuple(played)
        return result

    def _kept(self, played: Sequence[int]) -> Tree | None:
        """The tree below what was played since it was searched; None if the game took another course."""
        tree, self._tree = self._tree, None
        before = len(self._played)
        if tree is None or tuple(played[:before]) != self._played:
            return None
        if len(played) == before:
            return tree
        below = advance(tree, *(np.array([action], np.int32) for action in played[before:]))
        jax.block_until_ready(below)
        return below


def check_can_search_for_a_time(player: Player) -> None:
    """Raises InputError for a player without a `TimedPolicy`."""
    if not isinstance(player.policy, TimedPolicy):
        raise InputError(f"seconds is for searches; {player.name} does not search")


@dataclasses.dataclass(frozen=True)
class TimedPlayer:
    """A player that searches each position for this many seconds; see `TimedSearch`.

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
        check_can_search_for_a_time(self.player)
        check_seconds(self.seconds)


class TimedSeats(Seats):
    """The seats of a timed player. Its search is compiled before the first move, outside of its time."""

    def __init__(self, player: TimedPlayer) -> None:
        super().__init__()
        self._player, self._seconds = for_seconds(player.player, player.seconds), player.seconds
        self._searches: list[TimedSearch] = []
        self._is_compiled = False

    def begin(self, seats: SeatNumbers, starts: State, states: State) -> None:
        self._searches = [TimedSearch(self._player) for _ in seats]
        if not self._is_compiled:
            self._searches[0].compile(rows_of(states, slice(0, 1)))
            self._is_compiled = True

    def choose(self, key: PRNGKeyArray, states: State, rows: Rows, played: Sequence[Sequence[int]]) -> Sequence[Move]:
        """The moves, one after the other."""
        moves = []
        for row in rows.tolist():
            began = time.perf_counter()
            one = rows_of(states, slice(row, row + 1))
            result = self._searches[row].search(jax.random.fold_in(key, row), one, played[row], self._seconds)
            moves.append(int(np.asarray(result.action)[0]))
            self.seconds.append(time.perf_counter() - began)
        return moves

    def close(self) -> None:
        self._searches = []
