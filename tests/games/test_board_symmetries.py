"""The tables of symmetries, and the games that have none."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.board_symmetries import board_symmetries, cells_of_actions
from azjax.games.protocols import ActionGroup
from azjax.games.registry import make

TIC_TAC_TOE = type(make("tictactoe"))


class QuarterTurn(TIC_TAC_TOE):
    """Tic-tac-toe with the identity and one quarter turn alone."""

    def symmetries(self, state):
        states, permutation = super().symmetries(state)
        squares = np.array(board_symmetries(make("tictactoe")).squares)
        quarter = next(number for number, turn in enumerate(squares) if (turn[turn] != np.arange(9)).any())
        chosen = np.array([0, quarter])
        return jax.tree.map(lambda leaf: leaf[chosen], states), permutation[chosen]


class NumberedSquares(TIC_TAC_TOE):
    """Tic-tac-toe whose observations number the squares, whatever symmetry they are under."""

    def observe(self, state):
        return super().observe(state) + jnp.arange(9.0).reshape(3, 3, 1)


class FlatObservations(TIC_TAC_TOE):
    observation_shape = (18,)


def test_connect_four_is_reflected_left_to_right():
    squares, actions, *_ = board_symmetries(make("connect_four"))
    assert actions == ((0, 1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1, 0))
    assert squares[0] == tuple(range(42))
    assert squares[1] == tuple(np.arange(42).reshape(6, 7)[:, ::-1].reshape(-1).tolist())


def test_the_matrix_of_a_symmetry_moves_squares_as_it_does():
    for name in ("tictactoe", "connect_four", "connect2", "brandub"):
        game = make(name)
        rows, columns, _ = game.observation_shape
        found = board_symmetries(game)
        middle = np.array([rows - 1, columns - 1]) / 2
        for squares, matrix in zip(found.squares, found.matrices, strict=True):
            for square, target in enumerate(squares):
                moved = np.reshape(matrix, (2, 2)) @ (divmod(square, columns) - middle) + middle
                assert divmod(target, columns) == tuple(moved), (name, matrix, square)


def test_an_action_of_tictactoe_is_a_square_and_goes_where_it_goes():
    squares, actions, *_ = board_symmetries(make("tictactoe"))
    assert squares == actions
    assert len(set(squares)) == 8
    assert {turned[4] for turned in squares} == {4}
    assert {turned[0] for turned in squares} == {0, 2, 6, 8}


def test_santorini_moves_squares_and_directions_alike():
    # Direction 0 leads up and left, 7 down and right: from the middle they reach the corners.
    squares, actions, *_ = board_symmetries(make("santorini"))
    reached = (0, 1, 2, 3, 5, 6, 7, 8)
    for turned, moved in zip(squares, actions, strict=True):
        for move in range(8):
            for build in range(8):
                new_move, new_build = divmod(moved[8 * move + build], 8)
                assert (reached[new_move], reached[new_build]) == (turned[reached[move]], turned[reached[build]])


def test_with_numbered_workers_a_cell_is_a_square_and_two_directions():
    one, two = board_symmetries(make("santorini")), board_symmetries(make("santorini", size=3, workers=2))
    assert not one.layout
    assert two.squares == one.squares
    for turned, cells, moved in zip(two.squares, two.cells, one.cells, strict=True):
        for cell in range(9 * 64):
            square, directions = divmod(cell, 64)
            assert cells[cell] == 64 * turned[square] + moved[directions]


def test_the_cells_of_actions_are_those_of_the_squares_of_workers():
    game = make("santorini", size=5, workers=2, placement=True)
    layout = board_symmetries(game).layout
    state = game.init(jax.random.key(0))
    for action in (128 + 24, 128 + 3, 128 + 1, 128 + 2):  # player 0 places workers on 3 and 24
        placing = cells_of_actions(layout, game.observe(state)[None])[0]
        assert (placing[128:] == 25 * 64 + np.arange(25)).all()
        state = game.step(state, jnp.int32(action))
    cells = cells_of_actions(layout, game.observe(state)[None])[0]
    assert (cells[:64] == 3 * 64 + np.arange(64)).all()
    assert (cells[64:128] == 24 * 64 + np.arange(64)).all()
    assert (cells_of_actions(layout, game.observe(game.init(jax.random.key(0)))[None])[0, :128] == -1).all()


def test_numbered_pieces_without_a_layout_are_refused():
    class Unknown(type(make("santorini", size=3, workers=2))):
        action_layout = (ActionGroup("board", 128),)

    with pytest.raises(ValueError, match="where its symmetries move an action depends on the position"):
        board_symmetries(Unknown(size=3, workers=2))


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (QuarterTurn, "its symmetries are no group"),
        (NumberedSquares, "its symmetry 1 is no turn or reflection of the observed board"),
        (FlatObservations, r"has observations of shape \(18,\), not \(rows, columns, planes\)"),
    ],
)
def test_symmetries_that_are_none_of_a_board_are_refused(game, message):
    with pytest.raises(ValueError, match=message):
        board_symmetries(game(**dataclasses.asdict(make("tictactoe"))))
