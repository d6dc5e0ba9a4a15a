import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.evaluation import perft, solve
from azjax.games import check_game
from azjax.games.protocols import action_from_text, legal_texts
from azjax.games.registry import make
from azjax.render import svg
from benchmarks.rules.breakthrough import BreakthroughRules

KEY = jax.random.key(0)


@functools.cache
def random_texts(columns, rows, games):
    """The moves of random games as text."""
    game = make("breakthrough", columns=columns, rows=rows)
    step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    generator, played = random.Random(0), []
    for _ in range(games):
        state, moves = game.init(KEY), []
        while not state.terminated:
            action = generator.choice(np.flatnonzero(mask(state)).tolist())
            moves.append((game.action_to_text(state, action), legal_texts(game, state)))
            state = step(state, jnp.int32(action))
        played.append((moves, state.rewards.tolist()))
    return played


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(3, 5), pytest.param(4, 7, marks=pytest.mark.slow)])
def test_other_sizes_keep_every_law(columns, rows):
    assert check_game(make("breakthrough", columns=columns, rows=rows), num_games=8).lacks == ()


@pytest.mark.parametrize(("columns", "rows"), [(8, 8), (4, 5)])
def test_random_games_agree_with_openspiel(columns, rows):
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    rules = pyspiel.load_game(f"breakthrough(rows={rows},columns={columns})")

    def theirs(move):
        """Their first player goes down the board, and captures have a star."""
        start, end = (f"{square[0]}{rows + 1 - int(square[1])}" for square in (move[:2], move[2:]))
        return start + end

    for moves, rewards in random_texts(columns, rows, 8):
        state = rules.new_initial_state()
        for move, legal in moves:
            known = {state.action_to_string(action).rstrip("*"): action for action in state.legal_actions()}
            assert sorted(known) == sorted(map(theirs, legal))
            state.apply_action(known[theirs(move)])
        assert state.is_terminal()
        assert state.returns() == rewards


@pytest.mark.parametrize(("columns", "rows"), [(5, 5), (3, 7)])
def test_random_games_agree_with_plain_python_rules(columns, rows):
    game, rules = make("breakthrough", columns=columns, rows=rows), BreakthroughRules(columns, rows)
    step, mask, generator = jax.jit(game.step), jax.jit(game.legal_action_mask), random.Random(1)
    for _ in range(8):
        state, plain = game.init(KEY), rules.start()
        while not plain.terminal:
            legal = rules.legal_actions(plain)
            assert np.flatnonzero(mask(state)).tolist() == legal
            action = generator.choice(legal)
            state, plain = step(state, jnp.int32(action)), rules.step(plain, action)
            assert (bool(state.terminated), int(state.current_player)) == (plain.terminal, plain.player)
            assert tuple(state.rewards.tolist()) == plain.rewards
            own = np.zeros((rows, columns))
            for square in plain.own:
                own[square] = 1
            for square in plain.other:
                own[square] = -1
            np.testing.assert_array_equal(state.board, own)


@pytest.mark.parametrize(("side", "known"), [(8, [22, 484, 11_132]), (6, [16, 256, 4_308])])
def test_perft_is_that_of_plain_python_rules(side, known):
    rules = BreakthroughRules(side, side)

    def count(position, depth):
        if depth == 0:
            return 1
        return sum(count(rules.step(position, action), depth - 1) for action in rules.legal_actions(position))

    assert perft(make("breakthrough", columns=side, rows=side), 3) == known
    assert [count(rules.start(), depth) for depth in (1, 2, 3)] == known


def test_a_small_board_is_solved_as_by_plain_recursion():
    """On 3x4 squares, where 10,689 positions can be reached."""
    rules, known = BreakthroughRules(3, 4), {}

    def value(position):
        if position not in known:
            results = [-value(rules.step(position, action)) for action in rules.legal_actions(position)]
            known[position] = max(results, default=-1)
        return known[position]

    facts = solve(make("breakthrough", columns=3, rows=4)).summary()
    assert facts.value_first_player == value(rules.start()) == 1
    assert facts.reachable == len(known) == 10_689
    assert facts.won == sum(result == 1 for result in known.values())
    assert facts.lost == sum(known[each] == -1 for each in known if not each.terminal)


def test_a_pawn_captures_diagonally_and_not_straight():
    game = make("breakthrough", columns=3, rows=4)
    state = game.from_text("b../.b./.w./..w w")
    assert legal_texts(game, state) == ["b2a3", "b2c3", "c1c2"]
    state = game.from_text("b../.b./w../..w w")
    assert legal_texts(game, state) == ["a2a3", "a2b3", "c1b2", "c1c2"]
    after = game.step(state, jnp.int32(action_from_text(game, state, "a2b3")))
    assert game.to_text(after) == "b../.w./.../..w b"


@pytest.mark.parametrize(
    ("text", "move", "rewards"),
    [
        ("b../..w/.../... w", "c3c4", [1, -1]),
        (".../b../.w./... w", "b2a3", [1, -1]),
        ("..b/.../.b./..w b", "b2a1", [-1, 1]),
    ],
)
def test_the_last_row_and_the_last_pawn_win(text, move, rewards):
    game = make("breakthrough", columns=3, rows=4)
    state = game.from_text(text)
    after = game.step(state, jnp.int32(action_from_text(game, state, move)))
    assert (bool(after.terminated), after.rewards.tolist()) == (True, rewards)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bbb/.../www w", "a position is 4 rows of 3 squares with / between, and w or b to move"),
        ("bxb/.../.../www w", r"character 2 of 'bxb/.* is 'x'; allowed: w, b and \."),
        ("bbb/.w./.../www b", "has 4 pawns w, at most 3"),
        ("w../.b./.../... w", "is impossible: w has won, and is to move"),
        ("ww./.b./.../... b", "is impossible: two pawns are in the last row, and one ends the game"),
    ],
)
def test_impossible_positions_are_refused_with_the_reason(text, reason):
    with pytest.raises(InputError, match=reason):
        make("breakthrough", columns=3, rows=4).from_text(text)


@pytest.mark.parametrize(("option", "value", "allowed"), [("columns", 1, "2..26"), ("rows", 2, "3..26")])
def test_boards_that_are_too_small_are_refused(option, value, allowed):
    with pytest.raises(InputError, match=f"breakthrough: {option} must be {allowed}, got {value}"):
        make("breakthrough", **{option: value})


def test_moves_are_the_squares_of_either_side():
    game = make("breakthrough", columns=3, rows=4)
    state = game.init(KEY)
    assert game.action_squares(state, action_from_text(game, state, "a1b2")) == (9, 7)
    state = game.step(state, jnp.int32(action_from_text(game, state, "a1b2")))
    assert game.to_text(state) == "bbb/.../.w./.ww b"
    assert game.action_squares(state, action_from_text(game, state, "a4a3")) == (0, 3)
    assert "Last move a1-b2" in svg(game, state, last_action=action_from_text(game, game.init(KEY), "a1b2"))
    assert game.draw(state).splitlines() == ["4  b b b", "3  . . .", "2  . w .", "1  . w w", "   a b c"]
