import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.evaluation import perft, solve
from azjax.games.protocols import action_from_text, legal_texts
from azjax.games.registry import make

GAME = make("connect_four")
EMPTY = "/".join(["_______"] * 6)


def _after(moves):
    return GAME.from_text(moves)


def _random_game(rng, width, height, in_a_row):
    """A slow game on lists: states after each ply, as (text, legal columns, result for player 0 or None)."""
    columns = [[] for _ in range(width)]
    mover, history = 0, []
    while True:
        rows = [[column[r] if r < len(column) else "_" for column in columns] for r in reversed(range(height))]
        text = "/".join("".join(row) for row in rows)
        won = next((symbol for symbol in "XO" if _line(rows, symbol, in_a_row)), None)
        legal = [] if won else [c for c in range(width) if len(columns[c]) < height]
        result = {"X": 1, "O": -1}[won] if won else (0 if not legal else None)
        move = int(rng.choice(legal)) if legal else None
        history.append((text, legal, result, move))
        if move is None:
            return history
        columns[move].append("XO"[mover])
        mover = 1 - mover


def _line(rows, symbol, length):
    height, width = len(rows), len(rows[0])
    for r in range(height):
        for c in range(width):
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(r + i * dr, c + i * dc) for i in range(length)]
                if all(0 <= y < height and 0 <= x < width and rows[y][x] == symbol for y, x in cells):
                    return True
    return False


@pytest.mark.slow_except("7-6-4-40", "5-4-4-20", "1-3-2-2")
@pytest.mark.parametrize(
    ("width", "height", "in_a_row", "games"),
    [(7, 6, 4, 40), (5, 4, 4, 20), (3, 7, 3, 20), (12, 9, 5, 10), (1, 3, 2, 2)],
)
def test_random_games_agree_with_plain_python_rules(width, height, in_a_row, games):
    rng, game = np.random.default_rng(0), make("connect_four", columns=width, rows=height, in_a_row=in_a_row)
    step = jax.jit(game.step)
    mask = jax.jit(game.legal_action_mask)
    for _ in range(games):
        state = game.init(jax.random.key(0))
        for ply, (text, legal, result, move) in enumerate(_random_game(rng, width, height, in_a_row)):
            assert game.to_text(state) == text
            assert np.flatnonzero(mask(state)).tolist() == legal
            assert bool(state.terminated) == (result is not None)
            assert int(state.current_player) == ply % 2
            if result is not None:
                assert float(state.rewards[0]) == result
                assert game.to_text(game.from_text(text)) == text
            else:
                state = step(state, jnp.int32(move))


def test_a_board_of_one_column_is_its_own_mirror_image_and_is_not_turned_upside_down():
    game = make("connect_four", columns=1, rows=5, in_a_row=2)
    states, permutation = game.symmetries(game.from_text("_/_/_/X/O"))
    assert permutation.tolist() == [[0]]
    assert game.to_text(jax.tree.map(lambda leaf: leaf[0], states)) == "_/_/_/X/O"


@pytest.mark.parametrize(
    ("columns", "rows", "positions"),
    # J. Tromp, https://tromp.github.io/c4/c4.html, "Number of legal n x m positions".
    [(4, 4, 161_029), pytest.param(4, 5, 1_706_255, marks=pytest.mark.slow)],
)
def test_small_boards_have_as_many_positions_as_are_published(columns, rows, positions):
    assert solve(make("connect_four", columns=columns, rows=rows)).num_states == positions


def test_only_boards_of_at_most_nine_columns_have_strings_of_moves():
    wide = make("connect_four", columns=10, rows=2)
    with pytest.raises(ValueError, match="2 rows of 10 characters with / between, got '11'"):
        wide.from_text("11")
    assert make("connect_four", columns=9, rows=2).to_text(make("connect_four", columns=9, rows=2).from_text("99")) == (
        "________O/________X"
    )


def test_a_board_without_room_for_the_line_is_refused():
    with pytest.raises(ValueError, match=r"connect_four: in_a_row must be 1..3 on this board, got 4"):
        make("connect_four", columns=3, rows=3)


def test_perft_is_the_known_one():
    assert perft(GAME, 8) == [7, 49, 343, 2401, 16807, 117649, 823536, 5673234]


def test_a_string_of_columns_is_a_position():
    assert GAME.to_text(_after("4453")) == "_______/_______/_______/_______/___O___/__OXX__"
    assert int(_after("4453").current_player) == 0


def test_four_in_a_row_ends_the_game_in_every_direction():
    for moves in ("1212121", "1122334", "12233434474", "76655454414"):
        state = _after(moves)
        assert bool(state.terminated), moves
        assert np.asarray(state.rewards).tolist() == [1, -1]
        assert not np.asarray(GAME.legal_action_mask(state)).any()


def test_a_full_column_takes_no_more_stones():
    state = _after("111111")
    assert np.flatnonzero(GAME.legal_action_mask(state)).tolist() == [1, 2, 3, 4, 5, 6]
    again = GAME.step(state, jnp.int32(0))
    assert GAME.to_text(again) == GAME.to_text(state)
    assert int(again.current_player) == int(state.current_player)


def test_the_mirror_sends_column_a_to_6_minus_a():
    states, permutation = GAME.symmetries(_after("1123"))
    assert permutation.tolist() == [[0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0]]
    mirrored = jax.tree.map(lambda leaf: leaf[1], states)
    assert GAME.to_text(mirrored) == GAME.to_text(_after("7765"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("_______", "a position has 6 rows of 7 characters"),
        (EMPTY[:-1] + "Z", "is 'Z'; allowed: X, O and _"),
        (EMPTY[:-9] + "X/_______", "the X in column 7 of row 5 .* stands on nothing"),
        (EMPTY[:-2] + "XX", "has 2 X and 0 O"),
        ("8", "character 1 of '8': no stone can go into column 8"),
        ("1111111", "character 7 of '1111111': no stone can go into column 1"),
        ("12121213", "character 8 of '12121213': the game is over"),
        # The O on top of the line was played last, after X had won.
        ("_______/_______/_______/_______/OOOO___/XXXX___", "goes on after X had a line"),
        # The line lies below other stones, so that the last move did not make it.
        ("_______/_______/_______/_______/OOOX___/XXXXO__", "has lines that no last move completes"),
    ],
)
def test_impossible_text_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        GAME.from_text(text)


def test_moves_are_written_as_columns_from_1():
    state = GAME.init(jax.random.key(0))
    assert legal_texts(GAME, state) == ["1", "2", "3", "4", "5", "6", "7"]
    assert action_from_text(GAME, state, "4") == 3
    assert GAME.action_squares(_after("44"), 3) == (3 * 7 + 3,)


def test_the_numbers_of_many_columns_stand_below_them():
    game = make("connect_four", columns=12, rows=4)
    *rows, numbers = game.draw(game.step(game.init(jax.random.key(0)), jnp.int32(11))).splitlines()
    assert rows[-1].index("X") == numbers.index("12") + 1
    assert len({*map(len, rows), len(numbers)}) == 1
