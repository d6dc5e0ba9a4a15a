"""Checks of arguments: a game, and states of it."""

import jax
import numpy as np
from jaxtyping import PyTree

from azjax.core.errors import InputError
from azjax.core.remember import remember
from azjax.games.game import AnyGame, Game, S
from azjax.games.protocols import without_history


def check_is_game(game: object) -> None:
    """Raises InputError for the name of a game, or its class, in its place."""
    if isinstance(game, str):
        raise InputError(f"game must be a game, such as azjax.make({game!r}), got its name")
    if isinstance(game, type):
        raise InputError(f"game must be a game, such as {game.__name__}(), got its class")


def check_states(game: Game[S], states: S, *, batched: bool) -> None:
    """Checks that this is a state of the game, or a batch of them; their history plays no part.

    Raises:
      InputError: a state of another game or of other options, or one state in place of a batch, or a batch in place of
        one state.
    """
    wanted, states = _abstract_state(game), without_history(game, states)
    if len({jax.tree.structure(each) for each in (states, wanted)}) > 1:
        raise InputError(f"{game.name}: these states are of another game than {game}, or of other options")
    axes = int(batched)
    for leaf, like in zip(jax.tree.leaves(states), jax.tree.leaves(wanted), strict=True):
        if len(np.shape(leaf)) != axes + like.ndim or np.shape(leaf)[axes:] != like.shape:
            needed = "a batch of states, every leaf [B, ...]" if batched else "one state"
            raise InputError(f"{game.name} needs {needed}; got a leaf of shape {list(np.shape(leaf))}")


@remember  # a picture of each move is checked
def _abstract_state(game: AnyGame) -> PyTree:
    return jax.eval_shape(lambda: without_history(game, game.init(jax.random.key(0))))
