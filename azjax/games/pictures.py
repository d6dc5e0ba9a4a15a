"""Which games have a picture. `azjax.render.boards` registers the pictures of the package's games here."""

import functools
import importlib

import numpy as np
from jaxtyping import Array, Float

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.games.protocols import DrawableGame


@functools.singledispatch
def draw_board(
    game: AnyGame, state: State, policy: Float[Array | np.ndarray, "A"] | None, last_action: int | None
) -> str:
    """The picture of a position of a game of the package; see `azjax.render.svg`."""
    raise InputError(f"{game.name} has no picture: it defines no method svg")


def has_picture(game: AnyGame) -> bool:
    """Whether `azjax.render.svg` draws the positions of `game`."""
    importlib.import_module("azjax.render.boards")  # registers the pictures; nothing before needs them
    return isinstance(game, DrawableGame) or draw_board.dispatch(type(game)) is not draw_board.dispatch(object)
