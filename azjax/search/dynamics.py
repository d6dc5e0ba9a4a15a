"""What lies behind an edge: the rules of a game and an evaluator. Axis letters: see `tree.py`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int32, PRNGKeyArray, PyTree, Shaped, UInt32

from azjax.core.errors import InputError
from azjax.core.pytree import select_rows
from azjax.core.xla import one_kernel
from azjax.games.game import AnyGame, State, reward_of_mover
from azjax.games.protocols import RepetitionGame, earlier_positions, without_history
from azjax.games.repetition import History
from azjax.search.priors import legal_logits, legal_softmax


@runtime_checkable
class Evaluator(Protocol):
    """Evaluates positions: `evaluator(params, key, states) -> (prior_logits, value)`. Hashable by value.

    Values are seen by the player to move, in -1..1. Logits of illegal actions are ignored. A third result, if there is
    one, is the expected error of each value: simulations then count by it, see `uncertainty.py`.

    A search ends with a legal action whatever the evaluator gives: values beyond -1..1 and errors beyond 0..2 count as
    the nearest of these, the value NaN as 0, the error NaN as 2, and the logit NaN as the lowest.
    """

    def __call__(
        self, params: PyTree, key: PRNGKeyArray, states: State
    ) -> (
        tuple[Float[Array, "B A"], Float[Array, "B"]] | tuple[Float[Array, "B A"], Float[Array, "B"], Float[Array, "B"]]
    ): ...


class Step(NamedTuple):
    """A step into new positions.

    states: what a tree stores of the positions; every leaf [B, ...].
    reward: of the player who made the step.
    discount: what the value of the new position is worth to that player; 0 at the end of a game.
    output: what `Dynamics.evaluate` reads besides the states, or None.
    keys: of the positions, where earlier ones may not come back.
    """

    states: PyTree
    reward: Float32[Array, "B"]
    discount: Float32[Array, "B"]
    output: PyTree = None
    keys: UInt32[Array, "B 2"] | None = None


class Evaluation(NamedTuple):
    """The evaluation of B positions.

    actions: the action of each slot; None where slot a is action a.
    logits: of the slots' priors, see `legal_logits`.
    value: seen by the player to move; ignored after the end.
    error: expected error of `value`, 0 or more; None where simulations count alike.
    """

    actions: Int32[Array, "B K"] | None
    logits: Float32[Array, "K B"]
    value: Float32[Array, "B"]
    error: Float32[Array, "B"] | None = None


Occurred: TypeAlias = Callable[[UInt32[Array, "B 2"]], Int32[Array, "B"]]
"""`occurred(keys)`: how often the positions with these keys came before in their games."""


@runtime_checkable
class Dynamics(Protocol):
    """What lies behind an edge."""

    @property
    def max_depth(self) -> int:
        """No line is longer."""
        ...

    @property
    def cuts_off(self) -> bool:
        """Whether lines could go on at `max_depth`: there a search evaluates nodes and does not expand them."""
        ...

    def step(
        self, params: PyTree, key: PRNGKeyArray, states: PyTree, action: Int32[Array, "B"], occurred: Occurred | None
    ) -> Step:
        """Plays `action` in states [B, ...]."""
        ...

    def evaluate(self, params: PyTree, key: PRNGKeyArray, states: PyTree, output: PyTree) -> Evaluation:
        """Evaluates the states [B, ...] and the `output` of a step."""
        ...


@dataclasses.dataclass(frozen=True)
class GameDynamics:
    """The rules of `game` and the evaluations of `evaluator`. Hashable by value."""

    game: AnyGame
    evaluator: Evaluator

    @property
    def max_depth(self) -> int:
        return self.game.max_plies

    @property
    def cuts_off(self) -> bool:
        return False

    def step(
        self, params: PyTree, key: PRNGKeyArray, states: PyTree, action: Int32[Array, "B"], occurred: Occurred | None
    ) -> Step:
        del params, key
        following, keys = jax.vmap(self.game.step)(states, action), None
        if occurred is not None:
            assert isinstance(self.game, RepetitionGame)
            keys = jax.vmap(self.game.position_key)(following)
            repeated = occurred(keys) >= self.game.repetitions - 1
            following = select_rows(repeated, jax.vmap(self.game.repeated)(following), following)
        reward = reward_of_mover(states, following)
        same_player = following.current_player == states.current_player
        discount = jnp.where(following.terminated, jnp.float32(0), jnp.where(same_player, 1.0, -1.0))
        return Step(following, reward, discount, keys=keys)

    def evaluate(self, params: PyTree, key: PRNGKeyArray, states: PyTree, output: PyTree = None) -> Evaluation:
        del output
        return one_kernel(self._evaluate, self._size(states))(params, key, states)

    def _evaluate(self, params: PyTree, key: PRNGKeyArray, states: PyTree) -> Evaluation:
        size = len(states.terminated) * self.game.num_actions
        evaluation = one_kernel(self.evaluator, size)(params, key, states)
        _check_evaluation(evaluation, len(states.terminated), self.game.num_actions)
        return one_kernel(self._by_slot, self._size(states))(states, *evaluation)

    def _size(self, states: PyTree) -> int:
        return len(states.terminated) * self.game.max_legal_actions

    def _by_slot(
        self,
        states: PyTree,
        prior_logits: Float[Array, "B A"],
        value: Float[Array, "B"],
        error: Float[Array, "B"] | None = None,
    ) -> Evaluation:
        # Of an evaluator that computes in another precision.
        prior_logits, value = prior_logits.astype(jnp.float32), value.astype(jnp.float32)
        actions, valid = legal_slots(self.game, states)
        if actions is None:
            by_slot = prior_logits.T
        else:
            row = jnp.arange(len(prior_logits), dtype=jnp.int32)[None]
            by_slot = prior_logits.at[row, actions.T].get(mode="promise_in_bounds", wrap_negative_indices=False)
        value = jnp.where(jnp.isnan(value), 0, jnp.clip(value, -1, 1))
        # No value in -1..1 is more than 2 off.
        error = None if error is None else jnp.where(jnp.isnan(error), 2, jnp.clip(error, 0, 2)).astype(jnp.float32)
        return Evaluation(actions, legal_logits(by_slot, valid.T), value, error)


def _check_evaluation(evaluation: Any, batch: int, num_actions: int) -> None:
    """Refuses what is no evaluation of the batch: of other shapes a search would read wrong logits and values."""
    wanted = [(batch, num_actions), (batch,), (batch,)]
    shapes = [jnp.shape(part) for part in evaluation] if isinstance(evaluation, tuple | list) else None
    if shapes not in (wanted[:2], wanted):
        got = jax.tree.map(lambda part: list(jnp.shape(part)), evaluation)
        raise InputError(
            f"the evaluator must return prior_logits {list(wanted[0])} and value {list(wanted[1])}, and may return an "
            f"error of the value {list(wanted[2])}, for {batch} states of {num_actions} actions; it returned {got}"
        )


class Root(NamedTuple):
    """The positions that a search starts from.

    histories: of their games, every leaf [B, ...]; None where a repetition has no consequence.
    keys: of the positions; None where `histories` is.
    positions: the states without their history, every leaf [B, ...].
    terminated: the roots that have nothing below them.
    prior: probabilities over the legal slots, -1 in holes.
    """

    histories: History | None
    keys: UInt32[Array, "B 2"] | None
    positions: PyTree
    terminated: Bool[Array, "B"]
    prior: Float32[Array, "B K"]
    evaluation: Evaluation


def evaluate_root(dynamics: GameDynamics, params: PyTree, key: PRNGKeyArray, states: State) -> Root:
    """Evaluates the states [B, ...] that a search starts from."""
    evaluation = dynamics.evaluate(params, key, states)
    prior = legal_softmax(evaluation.logits).T
    game, keys = dynamics.game, None
    histories = jax.vmap(functools.partial(earlier_positions, game))(states)
    positions = jax.vmap(functools.partial(without_history, game))(states)
    if histories is not None:
        assert isinstance(game, RepetitionGame)
        keys = jax.vmap(game.position_key)(states)
    return Root(histories, keys, positions, states.terminated, prior, evaluation)


def legal_slots(game: AnyGame, states: State) -> tuple[Int32[Array, "B K"] | None, Bool[Array, "B K"]]:
    """The legal actions as compact tables: actions (None where slot a is action a), and which slots are valid."""
    if game.max_legal_actions == game.num_actions:
        return None, jax.vmap(game.legal_action_mask)(states)
    return jax.vmap(game.legal_slots)(states)


def to_slots(values: Shaped[Array, "B A"], actions: Int32[Array, "B K"] | None) -> Shaped[Array, "B K"]:
    """Values by action as values by slot."""
    return values if actions is None else jnp.take_along_axis(values, actions, axis=1)
