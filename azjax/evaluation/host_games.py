"""Games that the host plays: starts, random openings and moves. Compiled once per game, with NumPy leaves at both ends.

Axis letters: `G` games side by side.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Int, Int32, Key, PRNGKeyArray
from jaxtyping import ArrayLike as Numbers

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, Game, S, random_legal_action
from azjax.games.protocols import TextGame, action_from_text

_STARTS_COMPARED = 16  # of a game whose start may be random
_ATTEMPTS = 1000  # balanced openings are rare in some games, one of 20 in Brandub


def host_step(game: Game[S], states: S, actions: Int[Numbers, "*G"]) -> S:
    """The state after one action [], or the states after G actions [G]; a finished game stays as it is."""
    # Always one dtype, so that it compiles once.
    following: S = jax.tree.map(np.asarray, _step(game, states, np.asarray(actions, np.int32)))
    return following


def rows_of(states: S, rows: int | slice | Int[Numbers, "n"]) -> S:
    """The states of these rows, or the one of a single row, of states with leaves [G, ...]."""
    found: S = jax.tree.map(lambda leaf: leaf[rows], states)
    return found


def starts_of(game: Game[S], count: int, key: PRNGKeyArray) -> S:
    """`count` starts of the game, every leaf [count, ...]."""
    starts: S = jax.tree.map(np.asarray, _starts(game, jax.random.split(key, count)))
    return starts


def replay(game: Game[S], start: S, moves: Sequence[str]) -> tuple[list[S], list[int]]:
    """The positions of a game from `start` on, one more than its moves, with NumPy leaves; and its actions.

    Raises:
      InputError: an illegal move, or one after the end; the message tells its place.
    """
    states, actions = [jax.tree.map(np.asarray, start)], list[int]()
    for ply, move in enumerate(moves):
        if states[-1].terminated:
            raise InputError(f"the game ended after {ply} moves, and has {len(moves)}")
        try:
            actions.append(action_from_text(game, states[-1], move))
        except InputError as error:
            raise InputError(f"move {ply + 1}: {error}") from None
        states.append(host_step(game, states[-1], actions[-1]))
    return states, actions


def position_from_text(game: Game[S], text: str) -> S:
    """The position written as `text`: in the game's notation, or as the moves that lead there if it has none.

    Raises:
      InputError: see `TextGame.from_text` and `replay`.
    """
    if isinstance(game, TextGame):
        position: S = game.from_text(text)
        return position
    states, _ = replay(game, game.init(jax.random.key(0)), text.split())
    return states[-1]


def start_text(game: Game[S], state: S) -> str | None:
    """The text of one start position; None for the start of a game that always begins alike.

    Raises:
      InputError: another start, of a game whose positions cannot be written as text.
    """
    return None if _is_every_start(game, state) else text_game(game).to_text(state)


def only_start(game: Game[S]) -> S:
    """The start of a game that always begins alike.

    Raises:
      InputError: the game draws its start.
    """
    start = rows_of(starts_of(game, _STARTS_COMPARED, jax.random.key(0)), 0)
    if not _is_every_start(game, start):
        raise InputError(f"{game.name} draws its start, and has no position that all its games begin with")
    return start


def _is_every_start(game: Game[S], state: S) -> bool:
    """Whether some starts of the game are all this one."""
    starts = jax.tree.leaves(starts_of(game, _STARTS_COMPARED, jax.random.key(0)))
    return all(np.all(own == np.asarray(leaf)) for own, leaf in zip(starts, jax.tree.leaves(state), strict=True))


def text_game(game: AnyGame) -> TextGame[Any]:
    """The game, whose positions can be written as text.

    Raises:
      InputError: they cannot.
    """
    if not isinstance(game, TextGame):
        raise InputError(f"positions of {game.name} cannot be written as text: it is not a TextGame")
    return game


def random_openings(
    game: Game[S],
    plies: int,
    key: PRNGKeyArray,
    states: S,
    is_fair: Callable[[PRNGKeyArray, S], Bool[np.ndarray, "G"]] | None = None,
) -> tuple[S, Int32[np.ndarray, "G plies"]]:
    """Plays random moves from every state. Openings that end a game, or are not fair, are drawn again.

    Args:
      game: the game.
      plies: length of each opening; may be 0.
      key: consumed.
      states: NumPy leaves [G, ...].
      is_fair: says of the states after openings which of them are kept; all by default.

    Returns:
      The states after the openings, and the actions.

    Raises:
      InputError: all attempts to play this many plies from some state ended the game, or were not fair.
    """
    missing = np.arange(len(states.terminated))
    result, actions = jax.tree.map(np.copy, states), np.zeros((len(missing), plies), np.int32)
    if not plies:
        return result, actions
    for attempt in range(_ATTEMPTS):
        attempt_key = jax.random.fold_in(key, attempt)
        following, moves = _random_moves(game, plies, attempt_key, states)
        kept = ~np.asarray(following.terminated)
        if is_fair is not None:
            kept &= is_fair(jax.random.fold_in(attempt_key, 0), following)
        good = missing[kept[missing]]
        for leaf, new in zip(jax.tree.leaves(result), jax.tree.leaves(following), strict=True):
            leaf[good] = np.asarray(new)[good]
        actions[good] = np.asarray(moves)[good]
        missing = np.setdiff1d(missing, good)
        if not len(missing):
            return result, actions
    problem = "ended a game" if is_fair is None else "ended a game or were not balanced"
    raise InputError(f"{game.name}: {plies} random plies {problem} {_ATTEMPTS} times in a row")


@functools.partial(jax.jit, static_argnums=0)
def _step(game: Game[S], states: S, actions: Int32[Array, "*G"]) -> S:
    return (jax.vmap(game.step) if actions.ndim else game.step)(states, actions)


@functools.partial(jax.jit, static_argnums=0)
def _starts(game: Game[S], keys: Key[Array, "G"]) -> S:
    return jax.vmap(game.init)(keys)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random_moves(game: Game[S], plies: int, key: PRNGKeyArray, states: S) -> tuple[S, Int32[Array, "G plies"]]:
    def move(states: S, key: PRNGKeyArray) -> tuple[S, Int32[Array, "G"]]:
        keys = jax.random.split(key, len(states.terminated))
        actions = jax.vmap(functools.partial(random_legal_action, game))(keys, states)
        return jax.vmap(game.step)(states, actions), actions

    states, actions = jax.lax.scan(move, states, jax.random.split(key, plies))
    return states, actions.T
