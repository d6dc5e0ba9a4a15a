"""What a square reaches in `axial`, and what its layers share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.games.game import Game
from azjax.networks import AxialNet
from azjax.networks.axial import _AlongRows


class Board(Game):
    """A game of 6 rows, 5 columns and 2 planes with an action on each square, without rules."""

    observation_shape = (6, 5, 2)
    num_actions = 30


Board.__abstractmethods__ = frozenset()

# One stone on each square in turn, row by row, then none.
BOARDS = jnp.asarray(np.append(np.eye(30), np.zeros((1, 30)), axis=0).reshape(31, 6, 5, 1) * np.float32([1, 0]))


def test_a_layer_along_rows_moves_the_row_of_a_stone_alone_and_is_the_same_for_all():
    layer = _AlongRows(5, 2, 4, jnp.float32, nnx.Rngs(0))
    moved = np.asarray(layer(BOARDS, False)[:30] - layer(BOARDS[30:], False))
    for square in range(30):
        row, column = divmod(square, 5)
        assert set(np.flatnonzero(moved[square].any(axis=(1, 2)))) == {row}
        np.testing.assert_array_equal(moved[square, row], moved[column, 0])


@pytest.mark.slow
def test_one_block_sees_the_whole_board():
    network = AxialNet(8, 1).for_game(Board)
    variables = network.init(jax.random.key(0), Board)
    logits = np.asarray(network.apply(variables, BOARDS, train=False)[0].prior_logits)
    assert np.all(logits[:30] != logits[30])


def test_rows_differ_by_the_numbers_of_their_squares():
    network = AxialNet(8, 1).for_game(Board)
    variables = network.init(jax.random.key(0), Board)
    square = variables["params"]["squares"]
    variables["params"]["squares"] = jax.random.normal(jax.random.key(1), square.shape)
    logits = np.asarray(network.apply(variables, BOARDS[30:], train=False)[0].prior_logits)
    assert len(np.unique(logits)) == 30


def test_a_layer_has_weights_for_each_pair_of_squares_and_channels_in_a_line():
    params = AxialNet(8, 1).init(jax.random.key(0), Board)["params"]
    assert params["stem"]["line"]["kernel"].shape == (5 * 2, 5 * 8)
    assert params["block_0"]["along_columns"]["line"]["kernel"].shape == (6 * 8, 6 * 8)
    assert params["block_0"]["along_rows"]["line"]["kernel"].shape == (5 * 8, 5 * 8)


@pytest.mark.slow
def test_one_channel_is_enough():
    network = AxialNet(1, 1).for_game(Board)
    output, _ = network.apply(network.init(jax.random.key(0), Board), BOARDS, train=False)
    assert output.prior_logits.shape == (31, 30)
    assert np.isfinite(output.value).all()
