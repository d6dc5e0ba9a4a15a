"""The laws of the contract, tested on a batch of positions under `jit` and `vmap`. `check_game` calls them.

Axis letters: `B` states, `A` actions, `K` slots, `S` symmetries.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, PRNGKeyArray

from azjax.core.errors import InputError, LawError
from azjax.core.source import place_of
from azjax.games.endings import Endings, EndingsGame
from azjax.games.game import AnyGame, Game, S, State
from azjax.games.protocols import (
    NumberedGame,
    earlier_positions,
    is_numbered,
    next_game,
    without_history,
)

_T = TypeVar("_T")


def hold(holds: bool | np.bool_, method: str, law: str, *, found: str = "", at: Any = None) -> None:
    """Raises LawError unless the law holds. The message has what was found, or the position `at` which it is broken."""
    if not holds:
        with np.printoptions(threshold=64, edgeitems=2):  # histories are long
            where = "" if at is None else f"; at {at}"
        raise LawError(f"{method}: {found and f'{found}; '}broken law: {law}{where}")


def hold_each(holds: Any, method: str, law: str, states: State) -> None:
    """Raises LawError with the first of the states [B, ...] at which the law does not hold."""
    broken = np.flatnonzero(~np.asarray(holds))
    if len(broken):
        hold(False, method, law, at=jax.tree.map(lambda leaf: np.asarray(leaf[broken[0]]), states))


@contextlib.contextmanager
def in_method(name: str) -> Iterator[None]:
    """Names the method of the game in which an error is raised, and the line."""
    try:
        yield
    except Exception as error:
        message = str(error).strip().partition("\n")[0]
        if isinstance(error, jax.errors.TracerBoolConversionError):
            message += " Choose with jnp.where instead of with if, and, or, not."
        raise LawError(f"{name}: raised {type(error).__name__}{message and f': {message}'}{place_of(error)}") from error


def state_at(states: _T, index: SupportsIndex) -> _T:
    """One of a batch of states."""
    state: _T = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), states)
    return state


def _check_positions(game: AnyGame, states: State, key: PRNGKeyArray) -> None:
    del key
    num_states = len(states.terminated)
    masks = _on_batch(game, "legal_action_mask", states)
    over = np.asarray(states.terminated)
    count = masks.sum(axis=1)
    law = "no position has more than max_legal_actions legal actions"
    hold_each(count <= game.max_legal_actions, "max_legal_actions", law, states)
    hold_each(~over | (count == 0), "legal_action_mask", "no action is legal after the end", states)
    hold_each(over | (count > 0), "legal_action_mask", "a running game has a legal action", states)

    actions, valid = _on_batch(game, "legal_slots", states)
    in_range = np.where(valid, (actions >= 0) & (actions < game.num_actions), True).all(1)
    hold_each(in_range, "legal_slots", "slots hold actions", states)
    counted = np.zeros(masks.shape, int)
    np.add.at(counted, (np.arange(num_states)[:, None], np.clip(actions, 0, game.num_actions - 1)), valid)
    hold_each((counted == masks).all(1), "legal_slots", "the valid slots are exactly the legal actions", states)
    if game.max_legal_actions == game.num_actions:
        in_order = (actions == np.arange(game.num_actions)) | ~valid
        hold_each(in_order.all(1), "legal_slots", "where K == A, slot a is action a", states)

    bits = jax.random.bits(jax.random.key(0), (num_states,), jnp.uint32)
    drawn = _on_batch(game, "sample_legal_action", states, bits)
    in_range = (drawn >= 0) & (drawn < game.num_actions)
    drawn_legal = masks[np.arange(num_states), np.where(in_range, drawn, 0)] & in_range
    law = "sample_legal_action draws a legal action, or 0 after the end"
    hold_each(np.where(over, drawn == 0, drawn_legal), "sample_legal_action", law, states)

    observations = _on_batch(game, "observe", states)
    finite = np.isfinite(observations.reshape(num_states, -1)).all(1)
    hold_each(finite, "observe", "observations are finite", states)
    rewards = np.asarray(states.rewards)
    zero_sum = np.isfinite(rewards).all(1) & (rewards.sum(1) == 0)
    hold_each(zero_sum, "step", "rewards are finite and zero-sum", states)
    hold_each((np.abs(rewards) <= 1).all(1), "step", "rewards are in -1..1", states)
    player = np.asarray(states.current_player)
    hold_each((player == 0) | (player == 1), "step", "current_player is 0 or 1", states)


def _check_steps(game: AnyGame, states: State, key: PRNGKeyArray) -> None:
    """A legal action changes the position; an illegal one, and any after the end, does not."""
    step = jax.jit(jax.vmap(game.step))
    masks = _on_batch(game, "legal_action_mask", states)
    draws = np.asarray(jax.random.uniform(key, masks.shape))
    over = np.asarray(states.terminated)

    legal = np.argmax(np.where(masks, draws, -1), axis=1).astype(np.int32)
    changed = ~_same_position(step(states, legal), states)
    hold_each(over | changed, "step", "a legal action changes the position", states)

    after_the_end = "any action after the end changes nothing, with zero rewards"
    illegal = np.argmax(np.where(masks, -1, draws), axis=1).astype(np.int32)
    for actions in (illegal, np.full_like(illegal, -1), np.full_like(illegal, game.num_actions)):
        after = step(states, actions)
        kept = _same_position(after, states) & (np.asarray(after.rewards) == 0).all(1)
        # Where every action is legal there is no illegal one in range.
        kept |= masks.all(axis=1) if actions is illegal else False
        law = "an illegal action leaves the position as it is, with zero rewards"
        hold_each(kept | over, "step", law, states)
        hold_each(kept | ~over, "step", after_the_end, states)
    for draw in range(4):
        drawn = jax.random.randint(jax.random.fold_in(key, draw), over.shape, 0, game.num_actions)
        after = step(states, drawn)
        kept = _same_position(after, states) & (np.asarray(after.rewards) == 0).all(1)
        hold_each(kept | ~over, "step", after_the_end, states)


def _check_symmetries(game: Game[S], states: S, key: PRNGKeyArray) -> None:
    """Permute, then step = step, then permute; mask, player and result go with the symmetry."""
    states = jax.vmap(functools.partial(without_history, game))(states)

    @jax.jit
    def turn_and_step(states: S) -> tuple[Any, ...]:
        masks = jax.vmap(game.legal_action_mask)(states)
        actions = jnp.argmax(jnp.where(masks, jax.random.uniform(key, masks.shape), -1), axis=1).astype(jnp.int32)
        turned, permutation = jax.vmap(game.symmetries)(states)
        turned_masks = jax.vmap(jax.vmap(game.legal_action_mask))(turned)
        moves = jax.vmap(lambda where_to, action: where_to[:, action])(permutation, actions)
        turned_first = jax.vmap(jax.vmap(game.step))(turned, moves)
        stepped_first, _ = jax.vmap(game.symmetries)(jax.vmap(game.step)(states, actions))
        return turned, permutation, masks, turned_masks, turned_first, stepped_first

    turned, permutation, masks, turned_masks, turned_first, stepped_first = jax.device_get(turn_and_step(states))
    hold_in_symmetries = functools.partial(hold_each, method="symmetries", states=states)
    for s in range(permutation.shape[1]):
        image, one, other = (jax.tree.map(lambda leaf: leaf[:, s], x) for x in (turned, turned_first, stepped_first))
        where_to = permutation[:, s]
        if s == 0:
            hold_in_symmetries(_same_position(image, states), law="the first symmetry is the state itself")
        a_permutation = (np.sort(where_to, 1) == np.arange(game.num_actions)).all(1)
        hold_in_symmetries(a_permutation, law="a permutation of actions")
        goes_with = (np.take_along_axis(turned_masks[:, s], where_to, 1) == masks).all(1)
        hold_in_symmetries(goes_with, law="the mask goes with the symmetry")
        same = _same_position(one, other) & (one.rewards == other.rewards).all(1)
        hold_in_symmetries(same | states.terminated, law="permute, then step = step, then permute")


def _check_single_calls(game: Game[S], states: S, key: PRNGKeyArray) -> None:
    """Without vmap the results are the same."""
    del key

    def call_all(state: S) -> dict[str, Any]:
        mask = game.legal_action_mask(state)
        stepped = game.step(state, jnp.argmax(mask).astype(jnp.int32))
        return {
            "step": stepped,
            "legal_action_mask": mask,
            "legal_slots": game.legal_slots(state),
            "symmetries": game.symmetries(state),
            "observe": game.observe(state),
        }

    single, batched = jax.jit(call_all), jax.device_get(jax.jit(jax.vmap(call_all))(states))
    for index in np.linspace(0, len(states.terminated) - 1, 4).astype(int):
        state = state_at(states, index)
        for name, result in single(state).items():
            # Observations may differ in the last bit: another program may round at other places.
            close = functools.partial(np.allclose, rtol=1e-6, atol=1e-6) if name == "observe" else np.array_equal
            same = jax.tree.all(jax.tree.map(close, result, state_at(batched[name], index)))
            hold(same, name, f"a single call of {name} agrees with vmap", at=state)


def _check_numbers(game: Game[S], states: S, key: PRNGKeyArray) -> None:
    del key
    if not (isinstance(game, NumberedGame) and is_numbered(game)):
        return
    numbers = _on_batch(game, "position_number", states)
    hold(numbers.dtype == np.uint32, "position_number", "position_number is uint32", found=f"it is {numbers.dtype}")
    law = "position numbers are below num_position_numbers"
    hold_each(numbers < game.num_position_numbers, "position_number", law, states)
    again = _on_batch(game, "from_position_number", numbers)
    same = states.terminated | _same_position(again, states)
    law = "from_position_number(position_number(state)) is state"
    hold_each(same, "from_position_number", law, states)
    law = "from_position_number has zero rewards"
    hold_each((again.rewards == 0).all(1), "from_position_number", law, states)


def _check_endings(game: Game[S], states: S, key: PRNGKeyArray) -> None:
    del states
    if not isinstance(game, EndingsGame):
        return
    try:
        endings: Endings[S] = game.endings(1)
    except InputError:
        return
    stop = endings.num_position_numbers
    hold(endings.parts[-1].stop == stop, "endings", "the last part stops at num_position_numbers")
    numbers = jax.random.randint(key, (64,), 0, stop).astype(jnp.uint32)
    made = _on_batch(endings, "from_position_number", numbers)
    again = _on_batch(endings, "position_number", made)
    law = "position_number(from_position_number(number)) == number for the endings"
    hold_each(made.terminated | (again == numbers), "endings", law, made)


def _check_repetition(game: Any, states: S, key: PRNGKeyArray) -> None:
    """`step` with history = `step` without it, then `repeated` if the new position has occurred often enough."""
    if earlier_positions(game, state_at(states, 0)) is None:
        return

    @jax.jit
    @jax.vmap
    def step_twice(state: S, draw: Any) -> tuple[Any, ...]:
        alone, action = game.without_history(state), game.sample_legal_action(state, draw)
        following = game.step(alone, action)
        times = game.earlier_positions(state).times(game.position_key(following))
        occurred = times >= game.repetitions - 1
        ended = game.repeated(following)
        following = jax.tree.map(lambda end, go_on: jnp.where(occurred, end, go_on), ended, following)
        stepped = game.without_history(game.step(state, action))
        known = game.earlier_positions(state).contains(game.position_key(state))
        same_key = jnp.all(game.position_key(alone) == game.position_key(state))
        fresh = game.without_history(game.init(key))
        renewed = game.without_history(next_game(game, key, state))
        expected = jax.tree.map(lambda new, old: jnp.where(state.terminated, new, old), fresh, alone)
        begun = game.with_empty_history(game.step(state, action))
        begun_past, key_before = game.earlier_positions(begun), game.position_key(state)
        same_again = jnp.all(game.position_key(begun) == key_before)  # an action that changes nothing
        forgets = same_again | ~begun_past.contains(key_before)
        is_first = begun_past.contains(game.position_key(begun)) & forgets
        return following, stepped, known, same_key, renewed, expected, is_first

    draws = jax.random.bits(key, states.terminated.shape, jnp.uint32)
    following, stepped, known, same_key, renewed, expected, is_first = jax.device_get(step_twice(states, draws))
    over = states.terminated
    same = _same_position(following, stepped) & (following.rewards == stepped.rewards).all(1)
    law = "step with history = step without it, then repeated where the position occurred often enough"
    hold_each(over | same, "step", law, states)
    hold_each(over | known, "earlier_positions", "earlier_positions has the position itself", states)
    hold_each(same_key, "position_key", "position_key does not depend on the history", states)
    law = "next_game starts another game after the end, and not before"
    hold_each(_same_position(renewed, expected), "next_game", law, states)
    law = "with_empty_history has the position itself and none before it"
    hold_each(is_first, "with_empty_history", law, states)
    hold(game.with_max_plies(1).max_plies == 1, "with_max_plies", "with_max_plies sets max_plies")


LAWS: tuple[Callable[[Any, Any, PRNGKeyArray], None], ...] = (
    _check_positions,
    _check_steps,
    _check_symmetries,
    _check_single_calls,
    _check_numbers,
    _check_endings,
    _check_repetition,
)
"""Groups of laws: `law(game, states, key)` with states [B, ...] of random games, NumPy leaves."""


def _on_batch(game: AnyGame | Endings[Any], method: str, *arguments: Any) -> Any:
    """The results of a method on a batch, as NumPy arrays."""
    with in_method(method):
        return jax.device_get(jax.jit(jax.vmap(getattr(game, method)))(*arguments))


def leaves_by_name(state: Any) -> dict[str, Any]:
    """The leaves of a state by name."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _same_position(left: State, right: State) -> Bool[np.ndarray, "B"]:
    """Whether states are equal in every leaf but the rewards."""
    equal = np.ones(len(left.terminated), bool)
    for (name, a), b in zip(leaves_by_name(left).items(), leaves_by_name(right).values(), strict=True):
        if name != "rewards":
            equal &= (np.asarray(a) == np.asarray(b)).reshape(len(equal), -1).all(1)
    return equal
