import functools
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.evaluation import solve
from azjax.games.protocols import action_from_text
from azjax.games.registry import make

SOLVED = Path(__file__).parents[2] / "experiments" / "results" / "solved.json"


def _eat(lengths, row, column):
    """The lengths of the rows, from the bottom, after a bite."""
    return tuple(min(length, column) if number >= row else length for number, length in enumerate(lengths))


@functools.cache
def _wins(lengths):
    """Whether the player to move wins: somebody leaves the other player a lost bar."""
    if not any(lengths):
        return True  # the other player took the poison
    return any(not _wins(_eat(lengths, row, column)) for row, length in enumerate(lengths) for column in range(length))


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (4, 3), (5, 5), (2, 7)])
def test_random_games_agree_with_plain_python_rules(columns, rows):
    game, rng = make("chomp", columns=columns, rows=rows), np.random.default_rng(0)
    step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    for _ in range(10):
        state, lengths, player = game.init(jax.random.key(0)), (columns,) * rows, 0
        while any(lengths):
            drawn = "/".join("#" * length + "_" * (columns - length) for length in reversed(lengths))
            assert game.to_text(state) == f"{drawn} {player + 1}"
            assert not bool(state.terminated)
            moves = [(row, column) for row, length in enumerate(lengths) for column in range(length)]
            legal = sorted((rows - 1 - row) * columns + column for row, column in moves)
            assert np.flatnonzero(mask(state)).tolist() == legal
            row, column = moves[rng.integers(len(moves))]
            state = step(state, jnp.int32((rows - 1 - row) * columns + column))
            lengths, player = _eat(lengths, row, column), 1 - player
        assert bool(state.terminated)
        assert state.rewards.tolist() == [1 - 2 * player, 2 * player - 1]
        assert game.to_text(game.from_text(game.to_text(state))) == game.to_text(state)


@pytest.mark.parametrize(("columns", "rows"), [(4, 3), (3, 5), (4, 4), (2, 6)])
def test_the_exact_values_are_those_of_plain_minimax(columns, rows):
    game = make("chomp", columns=columns, rows=rows)
    summary = solve(game).summary()
    assert summary.value_first_player == 1
    best = [
        (rows - 1 - row) * columns + column
        for row in range(rows)
        for column in range(columns)
        if not _wins(_eat((columns,) * rows, row, column))
    ]
    assert list(summary.best_first_actions) == sorted(best)


@pytest.mark.parametrize("name", ["chomp_8x8", "chomp_10x8"])
def test_the_largest_solved_bars_are_those_of_plain_recursion(name):
    """Shorter bars first: a bar is lost where every bite leaves a won one."""
    row = json.loads(SOLVED.read_text())["rows"][name]
    columns, rows = map(int, name.removeprefix("chomp_").split("x"))
    wins = {}
    for lengths in sorted(itertools.combinations_with_replacement(range(columns, -1, -1), rows), key=sum):
        bites = ((number, column) for number, length in enumerate(lengths) for column in range(length))
        wins[lengths] = not any(lengths) or any(not wins[_eat(lengths, *bite)] for bite in bites)
    # Either player may be to move.
    assert 2 * (len(wins) - sum(wins.values())) == row["lost"]
    square = {(column, number) for number in range(rows) for column in range(columns)}
    full = (columns,) * rows
    best = {f"{'abcdefghij'[column]}{number + 1}" for column, number in square if not wins[_eat(full, number, column)]}
    assert best == set(row["best_first_moves"])


@pytest.mark.parametrize("side", [3, 5])
def test_a_square_bar_is_won_by_b2_alone(side):
    """What is left are two strips of one length, and the second player's moves in one are copied in the other."""
    game = make("chomp", columns=side, rows=side)
    b2 = action_from_text(game, game.init(jax.random.key(0)), "b2")
    assert solve(game).summary().best_first_actions == (b2,)


def test_a_bar_of_two_rows_is_won_by_its_upper_right_corner_alone():
    assert solve(make("chomp", columns=7, rows=2)).summary().best_first_actions == (6,)


def test_the_mirror_keeps_the_poison():
    game = make("chomp", columns=3, rows=3)
    state = game.from_text("#__/###/### 2")
    states, permutation = game.symmetries(state)
    mirrored = jax.tree.map(lambda leaf: leaf[1], states)
    assert game.to_text(mirrored) == "##_/##_/### 2"
    assert game.action_to_text(mirrored, int(permutation[1, action_from_text(game, state, "c1")])) == "a3"
    assert game.action_to_text(mirrored, int(permutation[1, action_from_text(game, state, "a1")])) == "a1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("###/### 1", "a position is 3 rows of 3 squares with / between, and 1 or 2 to move"),
        ("###/###/### 3", "1 or 2 to move"),
        ("##x/###/### 1", "character 3 of .* is 'x'; allowed: # and _"),
        ("###/#_#/### 1", "has squares above or to the right of b2, which is taken"),
        ("###/###/### 2", "is the start, where 1 is to move"),
    ],
)
def test_impossible_text_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        make("chomp", columns=3, rows=3).from_text(text)


def test_sides_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"chomp: rows must be 1\.\.16, got 17"):
        make("chomp", rows=17)


def test_the_bar_is_drawn_with_its_coordinates():
    drawn = make("chomp").draw(make("chomp").from_text("##__/####/#### 2"))
    assert drawn.splitlines() == ["3  # # . .", "2  # # # #", "1  # # # #", "   a b c d"]
