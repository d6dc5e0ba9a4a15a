"""`check_game`: the laws of the contract, tested on any game. For the project's own tests and for users' games.

Axis letters: `B` states, `A` actions, `K` slots, `S` symmetries.
"""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.game import Game, random_legal_action

_TEXT_STATES = 40  # text runs on the host, one state at a time


def check_game(game: Game, *, num_games: int = 32, seed: int = 0) -> None:
    """Plays random games and holds every law of `azjax.games.Game` against the positions met.

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
    _check_text(game, states, np.random.default_rng(seed))


def _check_facts(game: Game) -> None:
    _hold(hash(game) == hash(game) and game == game, "a game is hashable and equal to itself")
    _hold(isinstance(game.name, str) and bool(game.name), "name is a string", game.name)
    _hold(game.num_actions >= 1, "num_actions is at least 1", game.num_actions)
    _hold(1 <= game.max_legal_actions <= game.num_actions, "1 <= max_legal_actions <= num_actions")
    _hold(game.max_plies >= 1, "max_plies is at least 1", game.max_plies)
    start = game.init(jax.random.key(0))
    chex.assert_shape(start.rewards, (2,))
    _hold(int(start.current_player) == 0, "player 0 moves first", start)
    _hold(not bool(start.terminated), "the start is not the end", start)
    _hold(bool(jnp.all(start.rewards == 0)), "the start has no rewards", start)
    _hold(not bool(jnp.any(game.init(jax.random.key(0)).rewards)), "the same key starts the same game")


def _random_positions(game: Game, num_games: int, seed: int) -> Any:
    """All positions [B, ...] of random games, the finished ones once each, after `max_plies` and dtype checks."""
    init_key, play_key = jax.random.split(jax.random.key(seed))
    traces = []

    @jax.jit
    def play_ply(key: chex.PRNGKey, states: Any) -> Any:
        traces.append(1)
        actions = jax.vmap(functools.partial(random_legal_action, game))(jax.random.split(key, num_games), states)
        return jax.vmap(game.step)(states, actions)

    states = jax.jit(jax.vmap(game.init))(jax.random.split(init_key, num_games))
    seen = [states]
    for ply in range(game.max_plies):
        if bool(jnp.all(states.terminated)):
            break
        following = play_ply(jax.random.fold_in(play_key, ply), states)
        before, after = (jax.tree.map(lambda x: (x.shape, x.dtype), s) for s in (states, following))
        _hold(before == after, "step keeps every shape and dtype of the state", {"before": before, "after": after})
        running = ~np.asarray(states.terminated)
        seen.append(jax.tree.map(lambda x: x[running], following))  # noqa: B023 - used at once
        states = following
    _hold(bool(jnp.all(states.terminated)), f"a game ends within max_plies = {game.max_plies}", _first(states))
    _hold(len(traces) <= 1, "step is traced once for equal shapes", len(traces))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *seen)


def _check_positions(game: Game, states: Any) -> None:
    num_states = len(states.terminated)
    masks = np.asarray(jax.jit(jax.vmap(game.legal_action_mask))(states))
    _hold(masks.shape == (num_states, game.num_actions) and masks.dtype == bool, "legal_action_mask is bool [A]")
    over = np.asarray(states.terminated)
    count = masks.sum(axis=1)
    _hold_each(count <= game.max_legal_actions, "no position has more than max_legal_actions legal actions", states)
    _hold_each(~over | (count == 0), "no action is legal after the end", states)
    _hold_each(over | (count > 0), "a running game has a legal action", states)

    actions, valid = (np.asarray(x) for x in jax.jit(jax.vmap(game.legal_slots))(states))
    _hold(actions.shape == valid.shape == (num_states, game.max_legal_actions), "legal_slots is [K] twice")
    _hold_each(np.where(valid, (actions >= 0) & (actions < game.num_actions), True).all(1), "slots hold actions", states)
    counted = np.zeros(masks.shape, int)
    np.add.at(counted, (np.arange(num_states)[:, None], np.clip(actions, 0, game.num_actions - 1)), valid)
    _hold_each((counted == masks).all(1), "the valid slots are exactly the legal actions", states)
    if game.max_legal_actions == game.num_actions:
        in_place = (actions == np.arange(game.num_actions)) | ~valid
        _hold_each(in_place.all(1), "where K == A, slot a is action a", states)

    observations = np.asarray(jax.jit(jax.vmap(game.observe))(states))
    _hold(observations.shape == (num_states, *game.observation_shape), "observe has observation_shape")
    _hold(observations.dtype == np.float32, "observe is float32", observations.dtype)
    finite = np.isfinite(observations.reshape(num_states, -1)).all(1)
    _hold_each(finite, "observations are finite", states)
    rewards = np.asarray(states.rewards)
    _hold_each(np.isfinite(rewards).all(1) & (rewards.sum(1) == 0), "rewards are finite and zero-sum", states)
    player = np.asarray(states.current_player)
    _hold_each((player == 0) | (player == 1), "current_player is 0 or 1", states)


def _check_steps(game: Game, states: Any, key: chex.PRNGKey) -> None:
    """A legal action changes the position; an illegal one, and any after the end, does not."""
    step = jax.jit(jax.vmap(game.step))
    num_states = len(states.terminated)
    masks = jax.vmap(game.legal_action_mask)(states)
    over = np.asarray(states.terminated)

    draws = jax.random.uniform(key, masks.shape)
    legal = jnp.argmax(jnp.where(masks, draws, -1), axis=1).astype(jnp.int32)
    changed = ~_same_position(step(states, legal), states)
    _hold_each(over | changed, "a legal action changes the position", states)

    illegal = jnp.argmax(jnp.where(masks, -1, draws), axis=1).astype(jnp.int32)
    none_illegal = np.asarray(masks.all(axis=1))
    for actions in (illegal, jnp.full(num_states, -1, jnp.int32), jnp.full(num_states, game.num_actions, jnp.int32)):
        excused = none_illegal & (actions is illegal)
        after = step(states, actions)
        kept = _same_position(after, states) & (np.asarray(after.rewards) == 0).all(1)
        _hold_each(
            kept | excused | over, "an illegal action leaves the position as it is, with zero rewards", states
        )
        _hold_each(kept | excused | ~over, "any action after the end changes nothing, with zero rewards", states)


def _check_symmetries(game: Game, states: Any, key: chex.PRNGKey) -> None:
    """Permute, then step = step, then permute; mask, player and result go with the symmetry."""
    turned, permutation = jax.jit(jax.vmap(game.symmetries))(states)
    num_states, num_symmetries, _ = permutation.shape
    for s in range(num_symmetries):
        image, where_to = jax.tree.map(lambda x: x[:, s], turned), np.asarray(permutation[:, s])  # noqa: B023
        if s == 0:
            _hold_each(_same_position(image, states), "the first symmetry is the state itself", states)
        _hold_each((np.sort(where_to, 1) == np.arange(game.num_actions)).all(1), "a permutation of actions", states)
        mask = np.asarray(jax.vmap(game.legal_action_mask)(states))
        image_mask = np.asarray(jax.vmap(game.legal_action_mask)(image))
        _hold_each(
            (np.take_along_axis(image_mask, where_to, 1) == mask).all(1), "the mask goes with the symmetry", states
        )
        actions = jnp.argmax(jnp.where(mask, jax.random.uniform(key, mask.shape), -1), axis=1).astype(jnp.int32)
        moved = jax.vmap(game.step)(image, jnp.asarray(where_to)[jnp.arange(num_states), actions])
        images, _ = jax.vmap(game.symmetries)(jax.vmap(game.step)(states, actions))
        image_of_next = jax.tree.map(lambda x: x[:, s], images)  # noqa: B023
        found = _same_position(image_of_next, moved) & (np.asarray(image_of_next.rewards) == moved.rewards).all(1)
        over = np.asarray(states.terminated)
        _hold_each(found | over, "permute, then step = step, then permute", states)


def _check_single_calls(game: Game, states: Any) -> None:
    """Without jit and vmap the answers are the same."""
    num_states = len(states.terminated)
    chosen = np.linspace(0, num_states - 1, 4).astype(int)
    masks = jax.vmap(game.legal_action_mask)(states)
    actions = jnp.argmax(masks, axis=1).astype(jnp.int32)
    stepped = jax.jit(jax.vmap(game.step))(states, actions)
    observed = jax.jit(jax.vmap(game.observe))(states)
    for index in chosen:
        state = jax.tree.map(lambda x: x[index], states)  # noqa: B023
        alone = game.step(state, actions[index])
        batched = jax.tree.map(lambda x: x[index], stepped)  # noqa: B023
        same = jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), alone, batched))
        _hold(same, "a single call of step agrees with jit and vmap", state)
        _hold(
            bool(jnp.array_equal(game.legal_action_mask(state), masks[index])),
            "a single call of legal_action_mask agrees with jit and vmap",
            state,
        )
        _hold(
            bool(jnp.array_equal(game.observe(state), observed[index])),
            "a single call of observe agrees with jit and vmap",
            state,
        )


def _check_text(game: Game, states: Any, rng: np.random.Generator) -> None:
    try:
        game.to_text(_first(states))
    except NotImplementedError:
        return
    num_states = len(states.terminated)
    for index in rng.choice(num_states, min(_TEXT_STATES, num_states), replace=False):
        state = jax.tree.map(lambda x: x[index], states)  # noqa: B023
        text = game.to_text(state)
        again = game.from_text(text)
        _hold(game.to_text(again) == text, "to_text(from_text(text)) == text", text)
        _hold(bool(again.terminated) == bool(state.terminated), "from_text finds the end", text)
        _hold(
            bool(again.terminated) or int(again.current_player) == int(state.current_player),
            "from_text finds the player to move",
            text,
        )
        actions = np.flatnonzero(game.legal_action_mask(state))
        for action in rng.permutation(actions)[:3]:
            move = game.action_to_text(state, int(action))
            _hold(game.action_from_text(state, move) == action, "a move's text is read back", f"{text} {move}")


def _same_position(left: Any, right: Any) -> np.ndarray:
    """bool [B]: equal in every leaf but the rewards."""
    equal = np.ones(len(left.terminated), bool)
    for (path, a), (_, b) in zip(
        jax.tree_util.tree_leaves_with_path(left), jax.tree_util.tree_leaves_with_path(right), strict=True
    ):
        if jax.tree_util.keystr(path) != ".rewards":
            equal &= (np.asarray(a) == np.asarray(b)).reshape(len(equal), -1).all(1)
    return equal


def _first(states: Any) -> Any:
    return jax.tree.map(lambda x: x[0], states)


def _hold(law_holds: bool, law: str, shown: Any = None) -> None:
    if not law_holds:
        raise AssertionError(f"broken law: {law}" + ("" if shown is None else f"; at {shown}"))


def _hold_each(holds: Any, law: str, states: Any) -> None:
    broken = np.flatnonzero(~np.asarray(holds))
    if len(broken):
        _hold(False, law, jax.tree.map(lambda x: np.asarray(x[broken[0]]), states))
