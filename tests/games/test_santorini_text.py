"""Symmetries, text and boards of Santorini, of positions of random play and of set-ups."""

import functools
import itertools
import random

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azjax.games.protocols import action_from_text
from azjax.games.santorini import Santorini
from benchmarks.rules.santorini import DIRECTIONS, SantoriniRules

SIZES = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (5, 2, True)]


def rules_of(game):
    return SantoriniRules(game.size, game.workers, game.placement)


def at(states, index):
    return jax.tree.map(lambda leaf: leaf[index], states)


def turned_texts(game, position):
    """The position's text on a board turned in each of 8 ways."""
    images = []
    for transpose, flip_rows, flip_columns in itertools.product((False, True), repeat=3):

        def turn(square):
            row, column = square
            row = game.size - 1 - row if flip_rows else row
            column = game.size - 1 - column if flip_columns else column
            return (column, row) if transpose else (row, column)

        rules = rules_of(game)
        heights = {turn(square): rules.height(position, square) for square in rules.squares}
        workers = tuple(tuple(sorted(map(turn, side))) for side in position.workers)
        cells = tuple(heights[square] for square in rules.squares)
        images.append(rules.text(type(position)(cells, workers, position.player)))
    return images


@functools.partial(jax.jit, static_argnums=0)
def turn_then_step_and_step_then_turn(game, state, action):
    turned, permutation = game.symmetries(state)
    after_turn = jax.vmap(game.step)(turned, permutation[:, action])
    return turned, permutation, after_turn, game.symmetries(game.step(state, action))[0]


@st.composite
def positions(draw, sizes, setups):
    """(game, plain-Python position) of random play, or set up."""
    game = Santorini(*draw(st.sampled_from(sizes)))
    rules, generator = rules_of(game), random.Random(draw(st.integers(0, 2**32 - 1)))
    if setups and draw(st.booleans()):
        return game, rules.random_setup(generator)
    return game, generator.choice(rules.random_game(generator))[0]


@settings(max_examples=40, deadline=None)
@given(drawn=positions([(3, 2), (5, 2, True)], setups=True), choice=st.integers(0, 2**32))
def test_turning_and_then_playing_is_playing_and_then_turning(drawn, choice):
    game, position = drawn
    rules = rules_of(game)
    legal = rules.legal_actions(position)
    if not legal:
        return
    state = game.from_text(rules.text(position))
    action = legal[choice % len(legal)]
    turned, permutation, after_turn, turned_after = jax.device_get(
        turn_then_step_and_step_then_turn(game, state, action)
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, after_turn, turned_after))
    texts = [game.to_text(at(turned, index)) for index in range(8)]
    assert texts[0] == rules.text(position)
    assert sorted(texts) == sorted(turned_texts(game, position))
    assert (np.sort(permutation, axis=1) == np.arange(game.num_actions)).all()
    assert permutation[0].tolist() == list(range(game.num_actions))


@settings(max_examples=40, deadline=None)
@given(drawn=positions(SIZES, setups=False), choice=st.integers(0, 2**32))
def test_text_of_positions_and_moves_is_read_back(drawn, choice):
    game, position = drawn
    rules = rules_of(game)
    state = game.from_text(rules.text(position))
    assert game.to_text(state) == rules.text(position)
    assert (state.current_player, state.terminated) == (position.player, position.terminal)
    assert tuple(state.rewards.tolist()) == position.rewards
    if legal := rules.legal_actions(position):
        action = legal[choice % len(legal)]
        text = rules.action_text(position, action)
        assert game.action_to_text(state, action) == text
        assert action_from_text(game, state, text) == action
        assert action_from_text(game, state, str(action)) == action


PLACING = Santorini(5, 2, True)


@pytest.mark.parametrize(
    ("game", "text", "reason"),
    [
        (Santorini(2, 1), "0000001", "has 8 characters, 4 heights and 2 workers of two digits, got 7"),
        (Santorini(2, 1), "", "has 8 characters.*got 0"),
        (Santorini(3, 2), "000000000" + "0002202211", "has 17 characters.*got 19"),  # five workers
        (Santorini(2, 1), "05000011", "character 2 of '05000011' is '5'; a height is 0 to 4"),
        (Santorini(2, 1), "0x000011", "character 2 of '0x000011' is 'x'"),
        (Santorini(2, 1), "000²0011", "character 4 of '000²0011' is '²'"),
        (Santorini(2, 1), "00000012", "character 8 of '00000012' is '2'; a worker's row and column are 0 to 1$"),
        (Santorini(2, 1), "0000--11", "character 5 of '0000--11' is '-'"),
        (Santorini(2, 1), "00000000", "character 7 of '00000000': a worker stands on a2, where another one stands"),
        (Santorini(2, 1), "40000011", "character 5 of '40000011': a worker stands on a2, which is a dome"),
        (Santorini(3, 2), "000000000" + "02002022", "workers 02 00 of .* are not in row-major order$"),
        (Santorini(3, 1), "300000003" + "0022", "goes on after the side to move had won, with a worker on a3"),
        (Santorini(3, 1), "320000000" + "0022", "goes on after the side to move had won, with a worker on a3"),
        (Santorini(3, 2), "320000023" + "0110" + "0022", "goes on after a win, with workers on a3 and c1"),
        # The winner came from a square of height 2.
        (Santorini(3, 1), "311111111" + "2200", "no last move of .* steps onto height 3 on a3"),
        # The only such square has 2 levels, so that the block was built elsewhere, but there is none.
        (Santorini(3, 1), "320000000" + "2200", "no last move of .* steps onto height 3 on a3"),
        (PLACING, "0" * 25 + "00--11--", "has 1 workers of the side to move and 1 of the other"),
        (PLACING, "0" * 25 + "0011----", "has 2 workers of the side to move and 0 of the other"),
        (PLACING, "0" * 25 + "--00----", "workers -- 00 of .* are not in row-major order, with -- last"),
        (PLACING, "0" * 24 + "1" + "00------", "has blocks before all workers are placed"),
        (PLACING, "0" * 25 + "0-------", "character 27 of .* is '-'; .* 0 to 4, or -- for a worker not placed yet"),
    ],
)
def test_impossible_text_is_refused_with_the_reason(game, text, reason):
    with pytest.raises(ValueError, match=reason):
        game.from_text(text)


def test_a_move_that_is_not_legal_is_refused_with_the_legal_ones():
    game = Santorini(2, 1)
    state = game.init(jax.random.key(0))
    with pytest.raises(ValueError, match=r"'a2-b1\^a2' is not a legal move here; legal: a2-b2\^a2, "):
        action_from_text(game, state, "a2-b1^a2")


def test_a_move_is_from_to_and_build_and_a_placement_one_square():
    game = Santorini(5, 2)
    state = game.init(jax.random.key(0))
    action = action_from_text(game, state, "b4-c3^b3")
    assert action == 0 * 64 + DIRECTIONS.index((1, 1)) * 8 + DIRECTIONS.index((0, -1))
    assert game.action_squares(state, action) == (6, 12, 11)
    assert PLACING.action_squares(PLACING.init(jax.random.key(0)), 128 + 12) == (12,)


def test_the_board_is_drawn_with_heights_workers_and_coordinates():
    game = Santorini(3, 1)
    # One block, so that player 1 is to move: his worker is the first of the text.
    drawn = game.draw(game.from_text("010000000" + "22" + "00"))
    assert drawn.splitlines() == ["3  0X 1  0", "2  0  0  0", "1  0  0  0O", "   a  b  c"]


def test_pieces_are_placed_one_by_one_and_workers_beyond_their_number_move():
    game = Santorini(3, 1)
    state = game.init(jax.random.key(0))
    assert game.to_text(state) == "000000000" + "00" + "22"
    names = game.piece_names
    state = game.with_piece(state, 4, names.index("1 floor"))
    # A block more, so that the other side is to move, and stands first in the text.
    assert game.to_text(state) == "000010000" + "22" + "00"
    state = game.with_piece(state, 1, names.index("orange"))
    assert game.to_text(state) == "000010000" + "22" + "01"
    state = game.with_piece(state, 4, names.index("dome"))
    assert game.to_text(state) == game.to_text(game.from_text("000040000" + "01" + "22"))
    with pytest.raises(ValueError, match="a worker stands on b2, which is a dome"):
        game.from_text(game.to_text(game.with_piece(state, 4, names.index("purple"))))
    with pytest.raises(ValueError, match="a position has 13 characters"):
        game.from_text(game.to_text(game.with_piece(state, 1, names.index("nobody")))[:-2])


def test_a_position_with_workers_that_are_not_placed_yet_is_set_up_by_hand():
    state = PLACING.with_piece(PLACING.init(jax.random.key(0)), 12, PLACING.piece_names.index("orange"))
    assert PLACING.to_text(state) == "0" * 25 + "22--" + "----"
    assert PLACING.to_text(PLACING.from_text(PLACING.to_text(state))) == PLACING.to_text(state)
