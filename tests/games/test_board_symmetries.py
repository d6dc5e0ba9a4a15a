"""The tables of symmetries, and the games that have none."""

import numpy as np
import pytest

from azjax.games.board_symmetries import board_symmetries
from azjax.games.registry import make


def test_connect_four_is_reflected_left_to_right():
    squares, actions = board_symmetries(make("connect_four"))
    assert actions == ((0, 1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1, 0))
    assert squares[0] == tuple(range(42))
    assert squares[1] == tuple(np.arange(42).reshape(6, 7)[:, ::-1].reshape(-1).tolist())


def test_an_action_of_tictactoe_is_a_square_and_goes_where_it_goes():
    squares, actions = board_symmetries(make("tictactoe"))
    assert squares == actions
    assert len(set(squares)) == 8
    assert {turned[4] for turned in squares} == {4}
    assert {turned[0] for turned in squares} == {0, 2, 6, 8}


def test_santorini_moves_squares_and_directions_alike():
    # Direction 0 leads up and left, 7 down and right: from the middle they reach the corners.
    squares, actions = board_symmetries(make("santorini"))
    reached = (0, 1, 2, 3, 5, 6, 7, 8)
    for turned, moved in zip(squares, actions, strict=True):
        for move in range(8):
            for build in range(8):
                new_move, new_build = divmod(moved[8 * move + build], 8)
                assert (reached[new_move], reached[new_build]) == (turned[reached[move]], turned[reached[build]])


def test_numbered_workers_are_refused():
    with pytest.raises(ValueError, match="where its symmetries move an action depends on the position"):
        board_symmetries(make("santorini", size=3, workers=2))
