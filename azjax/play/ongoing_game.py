"""A game in progress, and the player that chooses moves in it: the state of the engines of all protocols."""

import time
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float64, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.evaluation import (
    Player,
    TimedPolicy,
    act,
    for_one_position,
    for_seconds,
    observe,
    start_memory,
    with_simulations,
)
from azjax.evaluation.host_games import host_step
from azjax.evaluation.timed import TimedSearch, check_can_search_for_a_time
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_from_text, action_to_text
from azjax.play.clock import Clock
from azjax.search import SearchResult
from azjax.search.budget import check_seconds


class OngoingGame:
    """The game so far, the player's memory of it, and the clocks.

    Args:
      game: the rules.
      player: chooses moves for either side.
      seed: seed of the player's draws.
      seconds: search time of each move without a clock, in place of the simulations; None for the simulations.

    Attributes:
      states: the positions since the start, with NumPy leaves.
      clocks: of player 0 and player 1; None for no limit. Only a `TimedPolicy` obeys them.

    Raises:
      InputError: `seconds` is not above 0, or the player cannot search for a given time.
    """

    def __init__(self, game: AnyGame, player: Player, *, seed: int = 0, seconds: float | None = None) -> None:
        if seconds is not None:
            check_seconds(seconds)
            check_can_search_for_a_time(player)
        self.game, self.player = game, for_one_position(player)
        self._key, self._num_keys, self._seconds = jax.random.key(seed), 0, seconds
        self._loaded, self._most_seconds = player, 0.0
        self._timed: TimedSearch | None = None
        self._memory: PyTree = None
        self.clocks: list[Clock | None] = [None, None]
        self.begin()

    @property
    def state(self) -> State:
        """The current position."""
        return self.states[-1]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return bool(self.state.terminated)

    @property
    def mover(self) -> int:
        """The player to move."""
        return int(self.state.current_player)

    @property
    def returns(self) -> Float64[np.ndarray, "2"]:
        """The sum of the rewards so far, by player."""
        return total_rewards(self.states)

    def begin(self, start: State | None = None) -> None:
        """Starts a new game, at `start` or at the game's own start."""
        start = self.game.init(self._next_key()) if start is None else start
        self.states: list[State] = [jax.tree.map(np.asarray, start)]
        self._played: list[int] = []
        self._begin_memory()
        if self._timed is not None:
            self._timed.forget()

    def play(self, move: str) -> None:
        """Plays a move for the side to move.

        Raises:
          InputError: the move is not legal.
        """
        self._step(action_from_text(self.game, self.state, move))

    def undo(self) -> None:
        """Takes back the last move.

        Raises:
          InputError: there is none.
        """
        if len(self.states) == 1:
            raise InputError("cannot undo")
        self.states.pop()
        self._played.pop()
        self._begin_memory()

    def choose(self) -> str:
        """Plays the player's move for the side to move, and returns it. The game must not be over."""
        clock, began = self.clocks[self.mover], time.perf_counter()
        seconds = self._seconds if clock is None else clock.budget()
        if seconds is not None and isinstance(self.player.policy, TimedPolicy):
            if clock is None:
                self.compile_timed_search(seconds)
            else:
                self.compile_for_clocks()
            actions = self._search_within(seconds).action
        else:
            one = batch_of_one(self.state)
            actions, _, self._memory = act(self.player, self._next_key(), one, self._memory)
        action = int(actions[0])
        move = action_to_text(self.game, self.state, action)
        if clock is not None:
            self.clocks[self.mover] = clock.after(time.perf_counter() - began)
        self._step(action)
        return move

    def analyze(self, seconds: float) -> list[tuple[str, float]]:
        """The moves of an unfinished game, best first, with their values in -1..1 for the side to move.

        Args:
          seconds: search time of a `TimedPolicy`, above 0. Other players think as always and give one move.
        """
        if isinstance(self.player.policy, TimedPolicy):
            self.compile_timed_search(seconds)
            result = self._search_within(seconds)
            visits, values = np.asarray(result.visits[0]), np.asarray(result.q_values[0])
            best = int(result.action[0])
            others = [int(action) for action in np.argsort(-visits, kind="stable") if visits[action] and action != best]
            ranked = [(action, float(values[action])) for action in (best, *others)]
        else:
            actions, choice, _ = act(self.player, self._next_key(), batch_of_one(self.state))
            ranked = [(int(actions[0]), float(np.nan_to_num(choice.value[0])))]
        return [(action_to_text(self.game, self.state, action), value) for action, value in ranked]

    def set_simulations(self, num_simulations: int) -> None:
        """Sets the simulations of each move without a time limit.

        Raises:
          InputError: the player does not search, or the number is below 1.
        """
        self._loaded, self._seconds = with_simulations(self._loaded, num_simulations), None
        self.player = for_one_position(self._loaded)
        self._begin_memory()  # the tree in the old one has another capacity

    def compile_for_clocks(self) -> None:
        """Compiles a search for the time that the clocks allow.

        After the first move a search that was compiled before stays: its tree may be small, but no clock runs while it
        compiles again.
        """
        if len(self.states) == 1 or not self._most_seconds:
            self.compile_timed_search(max(clock.budget() for clock in self.clocks if clock is not None))

    def compile_timed_search(self, seconds: float) -> None:
        """Compiles a search for this many seconds."""
        if not isinstance(self.player.policy, TimedPolicy) or seconds <= self._most_seconds:
            return
        self._most_seconds, player = seconds, for_seconds(self._loaded, seconds)
        if self._timed is None or player.policy != self._timed.player.policy:
            self._timed = TimedSearch(player)
            self._timed.compile(batch_of_one(self.game.init(jax.random.key(0))))

    def _search_within(self, seconds: float) -> SearchResult:
        """A search of the current position with what was compiled."""
        assert self._timed is not None
        return self._timed.search(self._next_key(), batch_of_one(self.state), self._played, seconds)

    def _next_key(self) -> PRNGKeyArray:
        self._num_keys += 1
        return jax.random.fold_in(self._key, self._num_keys)

    def _begin_memory(self) -> None:
        """Begins a memory at the current position. One is kept, and not one for each move: trees can be large."""
        self._memory = start_memory(self.player, batch_of_one(self.state))

    def _step(self, action: int) -> None:
        self.states.append(host_step(self.game, self.state, action))
        self._played.append(action)
        self._memory = observe(self.player, self._memory, np.array([action], np.int32))


def batch_of_one(state: State) -> State:
    """The state with a leading axis of size 1, NumPy leaves."""
    batch: State = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    return batch


def total_rewards(states: Sequence[State]) -> Float64[np.ndarray, "2"]:
    """The sum of the rewards of a game's positions, by player."""
    total: np.ndarray = np.sum([np.asarray(state.rewards, float) for state in states], axis=0)
    return total + 0.0  # no -0
