"""The picture of a position, of any game that has one."""

import dataclasses
import functools

import chex

from azjax.core.errors import InputError
from azjax.games.game import Game, State
from azjax.games.protocols import DrawableGame


@functools.singledispatch
def draw_board(game: Game, state: State, policy: chex.Array | None, last_action: int | None) -> str:
    """The SVG document of a position; the files of `azjax.render.boards` register the games of the package here."""
    raise NotImplementedError


def has_picture(game: Game) -> bool:
    """Whether `svg` draws the positions of `game`."""
    return isinstance(game, DrawableGame) or draw_board.dispatch(type(game)) is not draw_board.dispatch(object)


def svg(game: Game, state: State, *, policy: chex.Array | None = None, last_action: int | None = None) -> str:
    """The position as an SVG document without external references.

    Args:
      game: a game of the package, or one that is a `DrawableGame`.
      state: the position.
      policy: float [A]; probabilities of the actions, shown on the board; None to show none.
      last_action: the action that led to `state`, marked on the board; None to mark none.

    Raises:
      ValueError: the game has no picture.
    """
    if isinstance(game, DrawableGame):
        return svg(game, state, policy=policy, last_action=last_action)
    if not has_picture(game):
        raise InputError(f"{game.name} has no picture: it defines no method svg")
    return draw_board(game, state, policy, last_action)


@dataclasses.dataclass(frozen=True)
class Picture:
    """An SVG document that notebooks show."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def show(game: Game, state: State, *, policy: chex.Array | None = None, last_action: int | None = None) -> Picture:
    """The picture of a position, for notebooks; arguments and errors are those of `svg`."""
    return Picture(svg(game, state, policy=policy, last_action=last_action))


def fitted(picture: str) -> str:
    """An SVG document for a page: as wide as it asks for, or as what it stands in where that is narrower."""
    return picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
