"""A match between two policies as one jitted function.

Axis letters: `G` games played side by side, `P` plies that a game may have at most.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree

from azjax.core.pytree import pytree_dataclass, select_rows
from azjax.evaluation.match_result import MatchResult
from azjax.evaluation.players import Policy, draw
from azjax.games.game import AnyGame, State


@pytree_dataclass
class DeviceMatch:
    """The games of a match. Games 2i and 2i + 1 begin at the same start, and the policies change seats.

    Attributes:
      starts: states before the first moves, every leaf [G, ...].
      actions: -1 after the end of a game.
      rewards: of the first policy, summed over each game.
    """

    starts: State
    actions: Int32[Array, "P G"]
    rewards: Float32[Array, "G"]

    @property
    def score(self) -> Float32[Array, ""]:
        """The first policy's points per game: 1 for a win, 1/2 for a draw."""
        return (1 + jnp.mean(jnp.clip(self.rewards, -1, 1))) / 2

    def result(self, first: str, second: str) -> MatchResult:
        """The match on the host, between players of these names. A game that was cut has no forfeit and no end."""
        starts, actions, rewards = jax.device_get((self.starts, self.actions, self.rewards))
        return MatchResult(
            first,
            second,
            tuple(rewards.tolist()),
            tuple(tuple(game[game >= 0].tolist()) for game in actions.T),
            jax.tree.map(lambda leaf: np.asarray(leaf)[::2], starts),
        )


_Games = tuple[State, Float32[Array, "G 2"], Int32[Array, "P G"], Int32[Array, "G"]]
"""States, sums of rewards, actions, plies."""


def make_device_match(
    game: AnyGame,
    first: Policy,
    second: Policy,
    *,
    num_games: int,
    max_plies: int,
    start: Callable[[PRNGKeyArray], State] | None = None,
) -> Callable[[PyTree, PyTree, PRNGKeyArray], DeviceMatch]:
    """Makes `match(first_params, second_params, key)`, pure and jittable. The first policy is player 0 in even games.

    Args:
      game: the game.
      first: the policy whose rewards are summed.
      second: its opponent.
      num_games: G, at least 1.
      max_plies: P; a game that goes on after this many plies is a draw.
      start: `start(key)`: the start of two games; the game's own start by default.
    """

    def match(first_params: PyTree, second_params: PyTree, key: PRNGKeyArray) -> DeviceMatch:
        start_key, play_key = jax.random.split(key)
        starts = jax.vmap(start or game.init)(jax.random.split(start_key, (num_games + 1) // 2))
        starts = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, axis=0)[:num_games], starts)
        seat = jnp.arange(num_games, dtype=jnp.int32) & 1  # of the first policy

        def move(number: int, policy: Policy, params: PyTree, key: PRNGKeyArray, games: _Games) -> _Games:
            """Plays a ply in the games in which it is this policy's turn."""
            states, total, played, plies = games
            policy_key, draw_key = jax.random.split(key)
            actions = draw(draw_key, policy(params, policy_key, states).probabilities)
            following = jax.vmap(game.step)(states, actions)
            moved = (states.current_player == seat ^ number) & goes_on(games)
            total += jnp.where(moved[:, None], following.rewards, 0.0)
            rows = jnp.where(moved, plies, max_plies)
            played = played.at[rows, jnp.arange(num_games)].set(actions, mode="drop")
            return select_rows(moved, following, states), total, played, plies + moved

        def goes_on(games: _Games) -> Bool[Array, "G"]:
            states, _, _, plies = games
            return ~states.terminated & (plies < max_plies)

        def play(carry: tuple[Int32[Array, ""], _Games]) -> tuple[Int32[Array, ""], _Games]:
            turn, games = carry
            keys = jax.random.split(jax.random.fold_in(play_key, turn))
            games = move(0, first, first_params, keys[0], games)
            return turn + 1, move(1, second, second_params, keys[1], games)

        games: _Games = (
            starts,
            jnp.zeros((num_games, 2)),
            jnp.full((max_plies, num_games), -1),
            jnp.zeros(num_games, jnp.int32),
        )
        _, (_, total, played, _) = jax.lax.while_loop(
            lambda carry: jnp.any(goes_on(carry[1])), play, (jnp.int32(0), games)
        )
        return DeviceMatch(starts, played, jnp.where(seat == 0, total[:, 0], total[:, 1]))

    return match
