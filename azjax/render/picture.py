"""The picture of a position, for any game that has one."""

import dataclasses

import numpy as np
from jaxtyping import ArrayLike, Int

from azjax.games.game import AnyGame, State
from azjax.games.pictures import draw_board
from azjax.games.protocols import DrawableGame
from azjax.render.drawing import Policy


def svg(
    game: AnyGame,
    state: State,
    *,
    policy: Policy | None = None,
    last_action: Int[ArrayLike, ""] | None = None,
) -> str:
    """The position as an SVG document without external references.

    Args:
      game: a game of the package, or a `DrawableGame`, which draws itself.
      state: the position.
      policy: probabilities of the actions, drawn on the board; None to draw none.
      last_action: the action that led to `state`, marked on the board; None to mark none.

    Raises:
      InputError: the game has no picture, or `policy` does not have the game's number of actions.
    """
    last = None if last_action is None else int(np.asarray(last_action))
    if isinstance(game, DrawableGame):
        return game.svg(state, policy=policy, last_action=last)
    return draw_board(game, state, policy, last)


@dataclasses.dataclass(frozen=True)
class Picture:
    """An SVG document that notebooks show."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def show(
    game: AnyGame,
    state: State,
    *,
    policy: Policy | None = None,
    last_action: Int[ArrayLike, ""] | None = None,
) -> Picture:
    """The picture of a position for notebooks. Arguments and errors are those of `svg`."""
    return Picture(svg(game, state, policy=policy, last_action=last_action))
