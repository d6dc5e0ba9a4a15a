"""The picture of a position, for any game that has one."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
from jaxtyping import ArrayLike, Int

from azjax.core.errors import InputError
from azjax.core.whole_numbers import whole
from azjax.games.arguments import check_is_game, check_states
from azjax.games.game import AnyGame, State
from azjax.games.pictures import draw_board, has_picture
from azjax.games.protocols import DrawableGame
from azjax.render.drawing import Policy

_NAMESPACE = "http://www.w3.org/2000/svg"
_SIDE = re.compile(r"\+?(\d+\.?\d*|\.\d+)(?:px|pt|pc|mm|cm|in|em|rem|ex)?")
_USUAL_SIZE = ("300", "150")  # of a picture without a size, by CSS


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
      InputError: the game has no picture, `state` is no state of it, `policy` does not have its number of actions, or
        `last_action` is none of them.
    """
    check_is_game(game)
    if has_picture(game) and not isinstance(game, DrawableGame):
        check_states(game, state, batched=False)
    last = None if last_action is None else whole(np.asarray(last_action).tolist())
    if last_action is not None and (last is None or not 0 <= last < game.num_actions):
        raise InputError(
            f"last_action must be an action of {game.name}, 0..{game.num_actions - 1}, got {last_action!r}"
        )
    if isinstance(game, DrawableGame):
        return game.svg(state, policy=policy, last_action=last)
    return draw_board(game, state, policy, last)


def svg_element(game: AnyGame, state: State, last_action: Int[ArrayLike, ""] | None = None) -> ElementTree.Element:
    """The document of `svg` as a part of another: tags without a namespace, and four numbers as its `viewBox`."""
    picture = ElementTree.fromstring(svg(game, state, last_action=last_action))
    for element in picture.iter():
        element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
    box = picture.get("viewBox", "").replace(",", " ").split()
    sides = [_SIDE.fullmatch(picture.get(side, "").strip()) for side in ("width", "height")]
    size = [side[1] if side and float(side[1]) else usual for side, usual in zip(sides, _USUAL_SIZE, strict=True)]
    picture.set("viewBox", " ".join(box if len(box) == 4 else ["0", "0", *size]))
    return picture


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
