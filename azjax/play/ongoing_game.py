"""A game that goes on, and a player who is asked for moves in it: what engines of all protocols keep."""

import time
from typing import Any

import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation import Player, TimedPolicy, act, observe, start_memory, with_simulations
from azjax.evaluation.host_step import step_one
from azjax.games.game import Game
from azjax.games.protocols import action_from_text, action_to_text
from azjax.play.clock import Clock


class OngoingGame:
    """The game so far, what the player remembers of it, and how long it may think.

    Args:
      game: what is played.
      player: who plays; thinks of both sides when asked.
      seed: of the player's draws.
      seconds: for each move without a clock, in place of the simulations; None for the simulations.

    Attributes:
      states: since the start, NumPy leaves [...]; at most the length of a game.
      clocks: of both players; None where time does not count. They bind a `TimedPolicy` alone.

    Raises:
      ValueError: `seconds` is not above 0, or the player cannot search for a time.
    """

    def __init__(self, game: Game, player: Player, *, seed: int = 0, seconds: float | None = None) -> None:
        if seconds is not None and not seconds > 0:
            raise InputError(f"seconds must be above 0, got {seconds}")
        if seconds is not None and not isinstance(player.policy, TimedPolicy):
            raise InputError(f"seconds is for searches with priors; {player.name} is none")
        self.game, self.player = game, player
        self._key, self._draws, self._seconds = jax.random.key(seed), 0, seconds
        self._is_prepared = False
        self.clocks: list[Clock | None] = [None, None]
        self.begin()

    @property
    def state(self) -> Any:
        """The position, NumPy leaves [...]."""
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
    def returns(self) -> np.ndarray:
        """float [2]; the rewards of the players so far."""
        return np.sum([np.asarray(state.rewards, float) for state in self.states], axis=0) + 0.0

    def begin(self, start: Any = None) -> None:
        """Begins anew, at a state or at the game's own start."""
        start = self.game.init(self._next_key()) if start is None else start
        self.states = [jax.tree.map(np.asarray, start)]
        self._memories = [start_memory(self.player, _batch(self.state))]

    def play(self, move: str) -> None:
        """Makes a move of either side.

        Raises:
          ValueError: it is not legal.
        """
        self._go(action_from_text(self.game, self.state, move), self._memories[-1])

    def undo(self) -> None:
        """Takes the last move back.

        Raises:
          ValueError: there is none.
        """
        if len(self.states) == 1:
            raise InputError("cannot undo")
        self.states.pop()
        self._memories.pop()

    def choose(self) -> str:
        """Makes the player's move for the side to move of a game that is not over, and returns it."""
        clock, began = self.clocks[self.mover], time.perf_counter()
        seconds = self._seconds if clock is None else clock.budget()
        policy, memory = self.player.policy, self._memories[-1]
        if seconds is not None and isinstance(policy, TimedPolicy):
            self.prepare()
            # A search for a time begins anew: the tree that is remembered has no room for it.
            actions = policy.search_within(self.player.params, self._next_key(), _batch(self.state), seconds).action
        else:
            actions, _, memory = act(self.player, self._next_key(), _batch(self.state), memory)
        action = int(actions[0])
        move = action_to_text(self.game, self.state, action)
        if clock is not None:
            self.clocks[self.mover] = clock.after(time.perf_counter() - began)
        self._go(action, memory)
        return move

    def analyse(self, seconds: float) -> list[tuple[str, float]]:
        """Moves of a game that is not over, best first, with their values in -1..1 for the side to move.

        Args:
          seconds: above 0, for a `TimedPolicy`; others think as always, and tell of one move.
        """
        policy, states = self.player.policy, _batch(self.state)
        if isinstance(policy, TimedPolicy):
            self.prepare()
            result = policy.search_within(self.player.params, self._next_key(), states, seconds)
            visits, values = np.asarray(result.visits[0]), np.asarray(result.q_values[0])
            best = int(result.action[0])
            others = [int(action) for action in np.argsort(-visits, kind="stable") if visits[action] and action != best]
            found = [(action, float(values[action])) for action in (best, *others)]
        else:
            actions, judgement, _ = act(self.player, self._next_key(), states)
            found = [(int(actions[0]), float(np.nan_to_num(judgement.value[0])))]
        return [(action_to_text(self.game, self.state, action), value) for action, value in found]

    def set_simulations(self, num_simulations: int) -> None:
        """Sets the simulations of each move without a limit of time.

        Raises:
          ValueError: the player does not search, or a number below 1.
        """
        self.player, self._seconds = with_simulations(self.player, num_simulations), None
        # A tree that is remembered has room for as many as there were.
        self._memories = [start_memory(self.player, _batch(self.state))] * len(self.states)

    def prepare(self) -> None:
        """Compiles the search for a time, so that no clock runs meanwhile."""
        if isinstance(self.player.policy, TimedPolicy) and not self._is_prepared:
            start = _batch(self.game.init(jax.random.key(0)))
            self.player.policy.search_within(self.player.params, jax.random.key(0), start, 0.01)
            self._is_prepared = True

    def _next_key(self) -> jax.Array:
        self._draws += 1
        return jax.random.fold_in(self._key, self._draws)

    def _go(self, action: int, memory: Any) -> None:
        self.states.append(step_one(self.game, self.state, action))
        self._memories.append(observe(self.player, memory, np.array([action], np.int32)))


def _batch(state: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
