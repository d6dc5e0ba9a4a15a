"""Breakthrough: pawns as discs on squares."""

from azjax.games.breakthrough import Breakthrough, BreakthroughState
from azjax.games.pictures import draw_board
from azjax.render.drawing import Policy
from azjax.render.squares import draw_squares


@draw_board.register
def draw_breakthrough(
    game: Breakthrough, state: BreakthroughState, policy: Policy | None, last_action: int | None
) -> str:
    """The picture of a Breakthrough position."""
    squares = [] if last_action is None else game.squares_of(last_action, 1 - int(state.current_player))
    last = [divmod(square, game.columns) for square in squares]
    return draw_squares(game, state, game.owners(state), policy=policy, last_squares=last)
