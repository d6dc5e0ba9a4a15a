"""What a simulation finds behind an edge: the rules of a game and an evaluator. Axis letters: see `tree.py`."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import chex
import jax
import jax.numpy as jnp

from azjax.games.game import Game
from azjax.search.lanes import legal_logits


@runtime_checkable
class Evaluator(Protocol):
    """`evaluator(params, key, states) -> (prior_logits float32 [B, A], value float32 [B])`.

    Values are seen by the player to move, in -1..1. Logits of illegal actions are ignored. Hashable by value.
    """

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]: ...


class Step(NamedTuple):
    """A step into new positions.

    states: every leaf [B, ...]; what a tree stores of them.
    reward: float32 [B]; of the player who made it.
    discount: float32 [B]; what the value of the new position is worth to that player; 0 where nothing follows.
    output: what came with the states, for `Dynamics.judge` to read; None where they say it all.
    keys: uint32 [B, 2]; of the positions, where it was asked whether they occurred before.
    """

    states: Any
    reward: chex.Array
    discount: chex.Array
    output: Any = None
    keys: chex.Array | None = None


class Judgement(NamedTuple):
    """What is thought of B positions.

    actions: int32 [B, K]; action of each slot; None where slot a is action a.
    logits: float32 [K, B]; of the slots' priors, see `legal_logits`.
    value: float32 [B]; seen by the player to move; anything after the end.
    """

    actions: chex.Array | None
    logits: chex.Array
    value: chex.Array


Occurred = Callable[[chex.Array], chex.Array]
"""`occurred(keys uint32 [B, 2]) -> bool [B]`: which positions were there before in the games."""


@runtime_checkable
class Dynamics(Protocol):
    """What a simulation finds behind an edge."""

    @property
    def num_actions(self) -> int:
        """A."""

    @property
    def max_depth(self) -> int:
        """No line is longer."""

    def step(self, params: Any, key: chex.PRNGKey, states: Any, action: chex.Array, occurred: Occurred | None) -> Step:
        """Plays `action` [B] in states [B, ...]."""

    def judge(self, params: Any, key: chex.PRNGKey, states: Any, output: Any) -> Judgement:
        """Judges states [B, ...], which came with the `output` of a step."""


@dataclasses.dataclass(frozen=True)
class GameDynamics:
    """The rules of `game`, judged by `evaluator`. Hashable by value."""

    game: Game
    evaluator: Evaluator

    @property
    def num_actions(self) -> int:
        return self.game.num_actions

    @property
    def max_depth(self) -> int:
        return self.game.max_plies

    def step(self, params: Any, key: chex.PRNGKey, states: Any, action: chex.Array, occurred: Occurred | None) -> Step:
        """Plays `action` [B] in states [B, ...]."""
        del params, key
        following, keys = jax.vmap(self.game.step)(states, action), None
        if occurred is not None:
            keys = jax.vmap(self.game.position_key)(following)
            found = occurred(keys)
            ended = jax.vmap(self.game.repeated)(following)
            following = jax.tree.map(
                lambda end, state: jnp.where(found.reshape(-1, *[1] * (state.ndim - 1)), end, state), ended, following
            )
        reward = jnp.where(states.current_player == 0, following.rewards[:, 0], following.rewards[:, 1])
        same_player = following.current_player == states.current_player
        discount = jnp.where(following.terminated, 0.0, jnp.where(same_player, 1.0, -1.0))
        return Step(following, reward, discount, keys=keys)

    def judge(self, params: Any, key: chex.PRNGKey, states: Any, output: Any = None) -> Judgement:
        """Judges states [B, ...]."""
        del output
        prior_logits, value = self.evaluator(params, key, states)
        actions, valid = legal_slots(self.game, states)
        if actions is None:
            by_slot = prior_logits.T
        else:
            row = jnp.arange(len(prior_logits), dtype=jnp.int32)[None]
            by_slot = prior_logits.at[row, actions.T].get(mode="promise_in_bounds", wrap_negative_indices=False)
        return Judgement(actions, legal_logits(by_slot, valid.T), value)


def legal_slots(game: Game, states: Any) -> tuple[chex.Array | None, chex.Array]:
    """The games' compact tables: actions int32 [B, K] (None where slot a is action a), valid bool [B, K]."""
    if game.max_legal_actions == game.num_actions:
        return None, jax.vmap(game.legal_action_mask)(states)
    return jax.vmap(game.legal_slots)(states)


def to_slots(values: chex.Array, actions: chex.Array | None) -> chex.Array:
    """[B, A] by action -> [B, K] by slot."""
    return values if actions is None else jnp.take_along_axis(values, actions, axis=1)
