"""`check_game`: tests the laws of the contract and of the protocols that a game fulfills, on random games.

Axis letters: `B` states, `A` actions, `K` slots, `S` symmetries.
"""

import copy
import functools
import math
from collections.abc import Callable
from typing import Any, SupportsIndex, TypeVar
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, PRNGKeyArray

from azjax.games.game import AnyGame, Game, S, State, random_legal_action
from azjax.games.protocols import (
    BoardGame,
    DrawableGame,
    EditableGame,
    NumberedGame,
    RepetitionGame,
    TextGame,
    action_from_text,
    is_numbered,
    legal_actions,
    next_game,
    without_history,
)
from azjax.games.registry import available, make, options_of

_HOST_STATES = 40  # laws of host functions are tested on so many states, one at a time
_DRAWN_STATES = 4
_T = TypeVar("_T")


def check_game(game: AnyGame, *, num_games: int = 32, seed: int = 0) -> None:
    """Plays random games and tests every law of `azjax.games.Game` on the positions met.

    The laws of the protocols in `azjax.games.protocols` are tested for those that the game fulfills.

    Args:
      game: the game to test.
      num_games: random games, played side by side.
      seed: of the random play.

    Raises:
      AssertionError: a law is broken; the message names it and shows a position.
    """
    _check_facts(game)
    states = _random_positions(game, num_games, seed)
    _check_positions(game, states)
    _check_steps(game, states, jax.random.key(seed))
    _check_symmetries(game, states, jax.random.key(seed))
    _check_single_calls(game, states)
    if isinstance(game, NumberedGame) and is_numbered(game):
        _check_numbers(game, states)
    if isinstance(game, RepetitionGame):
        _check_repetition(game, states, jax.random.key(seed))
    _check_on_host(game, states, np.random.default_rng(seed))


def _check_facts(game: AnyGame) -> None:
    _hold(copy.deepcopy(game) == game, "a game equals its copy")
    _hold(hash(copy.deepcopy(game)) == hash(game), "equal games have one hash")
    _hold(isinstance(game.name, str) and bool(game.name), "name is a string", game.name)
    if game.name in available():
        again = make(game.name, **options_of(game))
        _hold(type(again) is not type(game) or again == game, "make(name, **options_of(game)) == game", again)
    _hold(game.num_actions >= 1, "num_actions is at least 1", game.num_actions)
    _hold(1 <= game.max_legal_actions <= game.num_actions, "1 <= max_legal_actions <= num_actions")
    _hold(game.max_plies >= 1, "max_plies is at least 1", game.max_plies)
    start = game.init(jax.random.key(0))
    _hold(isinstance(start, State), "a state has current_player, terminated and rewards", start)
    _hold(start.rewards.shape == (2,), "rewards has a number for each player", start)
    _hold(int(start.current_player) == 0, "player 0 moves first", start)
    _hold(not bool(start.terminated), "the start is not the end", start)
    _hold(bool(jnp.all(start.rewards == 0)), "the start has no rewards", start)
    again = game.init(jax.random.key(0))
    _hold(jax.tree.all(jax.tree.map(np.array_equal, start, again)), "the same key starts the same game", start)


def _random_positions(game: Game[S], num_games: int, seed: int) -> S:
    """All positions [B, ...] of random games, the finished ones once each, after checks of length and dtypes."""
    init_key, play_key = jax.random.split(jax.random.key(seed))
    traces = []

    @jax.jit
    def play_ply(key: PRNGKeyArray, states: S) -> S:
        traces.append(1)
        actions = jax.vmap(functools.partial(random_legal_action, game))(jax.random.split(key, num_games), states)
        return jax.vmap(game.step)(states, actions)

    starts = jax.jit(jax.vmap(game.init))(jax.random.split(init_key, num_games))
    play_ply(play_key, play_ply(play_key, starts))
    traces_when_fed_back = len(traces)
    # On the host, where a new shape costs no compilation.
    states = jax.device_get(starts)
    seen = [states]
    for ply in range(game.max_plies):
        if states.terminated.all():
            break
        following = jax.device_get(play_ply(jax.random.fold_in(play_key, ply), states))
        before, after = (jax.tree.map(lambda x: (x.shape, x.dtype), s) for s in (states, following))
        _hold(before == after, "step keeps every shape and dtype of the state", {"before": before, "after": after})
        running = ~states.terminated
        seen.append(jax.tree.map(lambda x: x[running], following))
        states = following
    _hold(
        traces_when_fed_back == 1,
        "step is traced once when its own result is fed back (a leaf without a dtype of its own is weakly typed)",
    )
    _hold(states.terminated.all(), f"a game ends within max_plies = {game.max_plies}", _at(states, 0))
    positions: S = jax.tree.map(lambda *leaves: np.concatenate(leaves), *seen)
    return positions


def _check_positions(game: AnyGame, states: State) -> None:
    num_states = len(states.terminated)
    masks = _on_batch(game.legal_action_mask, states)
    _hold(masks.shape == (num_states, game.num_actions) and masks.dtype == bool, "legal_action_mask is bool [A]")
    over = np.asarray(states.terminated)
    count = masks.sum(axis=1)
    _hold_each(count <= game.max_legal_actions, "no position has more than max_legal_actions legal actions", states)
    _hold_each(~over | (count == 0), "no action is legal after the end", states)
    _hold_each(over | (count > 0), "a running game has a legal action", states)

    actions, valid = _on_batch(game.legal_slots, states)
    _hold(actions.shape == valid.shape == (num_states, game.max_legal_actions), "legal_slots is [K] twice")
    _hold_each(
        np.where(valid, (actions >= 0) & (actions < game.num_actions), True).all(1), "slots hold actions", states
    )
    counted = np.zeros(masks.shape, int)
    np.add.at(counted, (np.arange(num_states)[:, None], np.clip(actions, 0, game.num_actions - 1)), valid)
    _hold_each((counted == masks).all(1), "the valid slots are exactly the legal actions", states)
    if game.max_legal_actions == game.num_actions:
        in_order = (actions == np.arange(game.num_actions)) | ~valid
        _hold_each(in_order.all(1), "where K == A, slot a is action a", states)

    bits = jax.random.bits(jax.random.key(0), (num_states,))
    drawn = np.asarray(jax.jit(jax.vmap(game.sample_legal_action))(states, bits))
    in_range = (drawn >= 0) & (drawn < game.num_actions)
    drawn_legal = masks[np.arange(num_states), np.where(in_range, drawn, 0)] & in_range
    _hold_each(np.where(over, drawn == 0, drawn_legal), "sample_legal_action draws a legal action, or 0", states)

    observations = _on_batch(game.observe, states)
    _hold(observations.shape == (num_states, *game.observation_shape), "observe has observation_shape")
    _hold(observations.dtype == np.float32, "observe is float32", observations.dtype)
    finite = np.isfinite(observations.reshape(num_states, -1)).all(1)
    _hold_each(finite, "observations are finite", states)
    rewards = np.asarray(states.rewards)
    _hold_each(np.isfinite(rewards).all(1) & (rewards.sum(1) == 0), "rewards are finite and zero-sum", states)
    player = np.asarray(states.current_player)
    _hold_each((player == 0) | (player == 1), "current_player is 0 or 1", states)


def _check_steps(game: AnyGame, states: State, key: PRNGKeyArray) -> None:
    """A legal action changes the position; an illegal one, and any after the end, does not."""
    step = jax.jit(jax.vmap(game.step))
    masks = _on_batch(game.legal_action_mask, states)
    draws = np.asarray(jax.random.uniform(key, masks.shape))
    over = np.asarray(states.terminated)

    legal = np.argmax(np.where(masks, draws, -1), axis=1).astype(np.int32)
    changed = ~_same_position(step(states, legal), states)
    _hold_each(over | changed, "a legal action changes the position", states)

    illegal = np.argmax(np.where(masks, -1, draws), axis=1).astype(np.int32)
    for actions in (illegal, np.full_like(illegal, -1), np.full_like(illegal, game.num_actions)):
        after = step(states, actions)
        kept = _same_position(after, states) & (np.asarray(after.rewards) == 0).all(1)
        # Where every action is legal there is no illegal one in range.
        kept |= masks.all(axis=1) if actions is illegal else False
        _hold_each(kept | over, "an illegal action leaves the position as it is, with zero rewards", states)
        _hold_each(kept | ~over, "any action after the end changes nothing, with zero rewards", states)
    for draw in range(4):
        drawn = jax.random.randint(jax.random.fold_in(key, draw), over.shape, 0, game.num_actions)
        after = step(states, drawn)
        kept = _same_position(after, states) & (np.asarray(after.rewards) == 0).all(1)
        _hold_each(kept | ~over, "any action after the end changes nothing, with zero rewards", states)


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
    for s in range(permutation.shape[1]):
        image, one, other = (jax.tree.map(lambda leaf: leaf[:, s], x) for x in (turned, turned_first, stepped_first))
        where_to = permutation[:, s]
        if s == 0:
            _hold_each(_same_position(image, states), "the first symmetry is the state itself", states)
        _hold_each((np.sort(where_to, 1) == np.arange(game.num_actions)).all(1), "a permutation of actions", states)
        goes_with = (np.take_along_axis(turned_masks[:, s], where_to, 1) == masks).all(1)
        _hold_each(goes_with, "the mask goes with the symmetry", states)
        same = _same_position(one, other) & (one.rewards == other.rewards).all(1)
        _hold_each(same | states.terminated, "permute, then step = step, then permute", states)


def _check_single_calls(game: Game[S], states: S) -> None:
    """Without vmap the results are the same."""

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

    single, batched = jax.jit(call_all), _on_batch(call_all, states)
    for index in np.linspace(0, len(states.terminated) - 1, 4).astype(int):
        state = _at(states, index)
        for name, result in single(state).items():
            # Observations may differ in the last bit: another program may round at other places.
            close = functools.partial(np.allclose, rtol=1e-6, atol=1e-6) if name == "observe" else np.array_equal
            same = jax.tree.all(jax.tree.map(close, result, _at(batched[name], index)))
            _hold(same, f"a single call of {name} agrees with vmap", state)


def _check_numbers(game: NumberedGame[S], states: S) -> None:
    numbers = _on_batch(game.position_number, states)
    _hold(numbers.dtype == np.uint32, "position_number is uint32", numbers.dtype)
    _hold_each(numbers < game.num_position_numbers, "position numbers are below num_position_numbers", states)
    again = jax.device_get(jax.jit(jax.vmap(game.from_position_number))(numbers))
    _hold_each(
        states.terminated | _same_position(again, states),
        "from_position_number(position_number(state)) is state",
        states,
    )
    _hold_each((again.rewards == 0).all(1), "from_position_number has zero rewards", states)


def _check_repetition(game: Any, states: S, key: PRNGKeyArray) -> None:
    """`step` with history = `step` without it, then `repeated` if the new position has occurred."""
    if game.earlier_positions(_at(states, 0)) is None:
        return

    @jax.jit
    @jax.vmap
    def step_twice(state: S, draw: Any) -> tuple[Any, ...]:
        alone, action = game.without_history(state), game.sample_legal_action(state, draw)
        following = game.step(alone, action)
        occurred = game.earlier_positions(state).contains(game.position_key(following))
        ended = game.repeated(following)
        following = jax.tree.map(lambda end, go_on: jnp.where(occurred, end, go_on), ended, following)
        stepped = game.without_history(game.step(state, action))
        known = game.earlier_positions(state).contains(game.position_key(state))
        same_key = jnp.all(game.position_key(alone) == game.position_key(state))
        fresh = game.without_history(game.init(key))
        renewed = game.without_history(next_game(game, key, state))
        expected = jax.tree.map(lambda new, old: jnp.where(state.terminated, new, old), fresh, alone)
        return following, stepped, known, same_key, renewed, expected

    draws = jax.random.bits(key, states.terminated.shape)
    following, stepped, known, same_key, renewed, expected = jax.device_get(step_twice(states, draws))
    over = states.terminated
    same = _same_position(following, stepped) & (following.rewards == stepped.rewards).all(1)
    _hold_each(over | same, "step with history = step without it, then repeated where the position occurred", states)
    _hold_each(over | known, "earlier_positions has the position itself", states)
    _hold_each(same_key, "position_key does not depend on the history", states)
    _hold_each(_same_position(renewed, expected), "next_game starts another game after the end, and not before", states)
    _hold(game.with_max_plies(1).max_plies == 1, "with_max_plies sets max_plies")


def _check_on_host(game: AnyGame, states: State, rng: np.random.Generator) -> None:
    num_states = len(states.terminated)
    for number, index in enumerate(rng.choice(num_states, min(_HOST_STATES, num_states), replace=False)):
        state = _at(states, index)
        actions = legal_actions(game, state)
        if isinstance(game, TextGame):
            _check_text(game, state, rng.permutation(actions)[:3].tolist())
        if isinstance(game, BoardGame):
            _check_squares(game, state, actions)
        if isinstance(game, EditableGame) and isinstance(game, TextGame):
            _check_editing(game, state, rng)
        if isinstance(game, DrawableGame) and number < _DRAWN_STATES:
            _check_picture(game, state)


def _check_text(game: Any, state: State, actions: list[int]) -> None:
    text = game.to_text(state)
    again = game.from_text(text)
    _hold(game.to_text(again) == text, "to_text(from_text(text)) == text", text)
    # A draw may follow from what the text does not have, such as a repetition.
    decided = bool(again.terminated) or bool(np.any(np.asarray(state.rewards) != 0))
    _hold(not decided or bool(again.terminated) == bool(state.terminated), "from_text finds the end", text)
    same_result = not (decided and bool(state.terminated)) or np.array_equal(again.rewards, state.rewards)
    _hold(same_result, "from_text finds the result", text)
    same_player = int(again.current_player) == int(state.current_player)
    _hold(bool(again.terminated) or same_player, "from_text finds the player to move", text)
    for action in actions:
        move = game.action_to_text(state, action)
        _hold(action_from_text(game, state, move) == action, "a move's text is read back", f"{text} {move}")


def _check_squares(game: Any, state: State, actions: list[int]) -> None:
    squares = [game.action_squares(state, action) for action in actions]
    on_board = all(0 <= square < math.prod(game.observation_shape[:2]) for clicks in squares for square in clicks)
    _hold(on_board, "action_squares are on the board", (state, squares))
    _hold(len({*squares}) == len(actions), "no two legal actions have the same squares", (state, squares))


def _check_editing(game: Any, state: State, rng: np.random.Generator) -> None:
    square = int(rng.integers(math.prod(game.observation_shape[:2])))
    piece = int(rng.integers(len(game.piece_names)))
    once = game.with_piece(state, square, piece)
    twice = game.with_piece(once, square, piece)
    _hold(
        game.to_text(once) == game.to_text(twice), "placing a piece twice is the same as once", (state, square, piece)
    )


def _check_picture(game: Any, state: State) -> None:
    picture = game.svg(state)
    try:
        ElementTree.fromstring(picture)
    except ElementTree.ParseError as error:
        raise AssertionError(f"broken law: svg is well-formed XML; {error}; at {state}") from error


def _on_batch(function: Callable[..., Any], states: State) -> Any:
    """The results of a function of one state on a batch, as NumPy arrays."""
    return jax.device_get(jax.jit(jax.vmap(function))(states))


def _same_position(left: State, right: State) -> Bool[np.ndarray, "B"]:
    """Whether states are equal in every leaf but the rewards."""
    equal = np.ones(len(left.terminated), bool)
    for (path, a), (_, b) in zip(
        jax.tree_util.tree_leaves_with_path(left), jax.tree_util.tree_leaves_with_path(right), strict=True
    ):
        if jax.tree_util.keystr(path) != ".rewards":
            equal &= (np.asarray(a) == np.asarray(b)).reshape(len(equal), -1).all(1)
    return equal


def _at(states: _T, index: SupportsIndex) -> _T:
    state: _T = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), states)
    return state


def _hold(law_holds: bool | np.bool_, law: str, shown: Any = None) -> None:
    if not law_holds:
        with np.printoptions(threshold=64, edgeitems=2):  # histories are long
            raise AssertionError(f"broken law: {law}" + ("" if shown is None else f"; at {shown}"))


def _hold_each(holds: Any, law: str, states: State) -> None:
    broken = np.flatnonzero(~np.asarray(holds))
    if len(broken):
        _hold(False, law, jax.tree.map(lambda leaf: np.asarray(leaf[broken[0]]), states))
