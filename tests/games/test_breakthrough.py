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


class PlainBreakthrough:
    """The rules in plain Python, by sets of pawns. A position: own pawns, other pawns, and where the mover goes."""

    def __init__(self, columns, rows, pawn_rows):
        self.columns, self.rows = columns, rows
        white = frozenset((row, column) for row in range(pawn_rows) for column in range(columns))
        self.start = white, frozenset((rows - 1 - row, column) for row, column in white), 1

    def is_lost(self, own, other, ahead):
        return not own or any(row == (0 if ahead == 1 else self.rows - 1) for row, _ in other)

    def following(self, own, other, ahead):
        if self.is_lost(own, other, ahead):
            return
        for row, column in own:
            for side in (-1, 0, 1):
                target = (row + ahead, column + side)
                if 0 <= target[1] < self.columns and target not in own and not (side == 0 and target in other):
                    yield other - {target}, own - {(row, column)} | {target}, -ahead

    def count_sequences(self, depth, position=None):
        position = position or self.start
        return 1 if depth == 0 else sum(self.count_sequences(depth - 1, each) for each in self.following(*position))

    def values(self):
        """The value of each position for its mover."""
        known = {}

        def value(position):
            if position not in known:
                results = [-value(each) for each in self.following(*position)]
                known[position] = -1 if self.is_lost(*position) else max(results)
            return known[position]

        value(self.start)
        return known


@pytest.mark.parametrize(("columns", "rows", "pawn_rows", "depth"), [(5, 5, 1, 5), (3, 3, 1, 5), (3, 6, 2, 4)])
def test_sequences_of_moves_are_counted_as_by_plain_rules(columns, rows, pawn_rows, depth):
    game, plain = make("breakthrough", columns=columns, rows=rows), PlainBreakthrough(columns, rows, pawn_rows)
    assert perft(game, depth) == [plain.count_sequences(plies) for plies in range(1, depth + 1)]


def test_a_small_board_is_solved_as_by_plain_recursion():
    plain, facts = PlainBreakthrough(3, 4, 1), solve(make("breakthrough", columns=3, rows=4)).summary()
    values = plain.values()
    unfinished = [each for each in values if not plain.is_lost(*each)]
    assert facts.reachable == len(values)
    assert facts.value_first_player == values[plain.start]
    assert facts.won == sum(values[each] == 1 for each in unfinished)
    assert facts.lost == sum(values[each] == -1 for each in unfinished)


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
