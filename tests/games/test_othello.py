import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.evaluation import perft, solve
from azjax.games.game import Game
from azjax.games.protocols import action_from_text, legal_texts
from azjax.games.registry import make
from benchmarks.rules.othello import OthelloRules

GAME = make("othello")


@pytest.mark.slow_except("6-5")
@pytest.mark.parametrize(("size", "games"), [(4, 20), (6, 5), (8, 5)])
def test_random_games_agree_with_plain_python_rules(size, games):
    generator, game, rules = random.Random(0), make("othello", size=size), OthelloRules(size)
    step, mask, passes = jax.jit(game.step), jax.jit(game.legal_action_mask), 0
    for _ in range(games):
        state, plain = game.init(jax.random.key(0)), rules.start()
        while not plain.terminal:
            legal = rules.legal_actions(plain)
            assert game.to_text(state) == rules.text(plain)
            assert np.flatnonzero(mask(state)).tolist() == legal
            assert int(state.current_player) == plain.player
            action = generator.choice(legal)
            passes += action == size**2
            state, plain = step(state, jnp.int32(action)), rules.step(plain, action)
            assert bool(state.terminated) == plain.terminal
            assert tuple(state.rewards.tolist()) == plain.rewards
        read = game.from_text(rules.text(plain))
        assert game.to_text(read) == rules.text(plain)
        assert tuple(read.rewards.tolist()) == plain.rewards
    assert passes > 0 or size > 4


@pytest.mark.slow
def test_random_games_agree_with_openspiel():
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    rules, step, mask = pyspiel.load_game("othello"), jax.jit(GAME.step), jax.jit(GAME.legal_action_mask)
    generator, passes = np.random.default_rng(0), 0
    for _ in range(40):
        state, theirs = GAME.init(jax.random.key(0)), rules.new_initial_state()
        while not theirs.is_terminal():
            legal = np.flatnonzero(mask(state)).tolist()
            assert legal == theirs.legal_actions()
            assert int(state.current_player) == theirs.current_player()
            action = int(generator.choice(legal))
            passes += action == 64
            state = step(state, jnp.int32(action))
            theirs.apply_action(action)
        assert bool(state.terminated)
        assert state.rewards.tolist() == theirs.returns()
    assert passes > 0


def test_perft_is_the_known_one():
    """The counts that programs of Othello publish."""
    assert perft(GAME, 5) == [4, 12, 56, 244, 1396]


def test_perft_of_a_smaller_board_is_that_of_plain_python_rules():
    rules = OthelloRules(6)

    def count(position, depth):
        if depth == 0:
            return 1
        return sum(count(rules.step(position, action), depth - 1) for action in rules.legal_actions(position))

    assert perft(make("othello", size=6), 5) == [count(rules.start(), depth) for depth in range(1, 6)]
    assert count(rules.start(), 5) == 1364


@pytest.mark.slow
def test_on_four_rows_the_second_player_wins():
    """As every solution of the small board has found; the first move makes no difference, by symmetry."""
    summary = solve(make("othello", size=4)).summary()
    assert summary.value_first_player == -1
    assert len(summary.best_first_actions) == 4


def test_the_first_moves_of_black_are_those_of_the_standard_start():
    state = GAME.init(jax.random.key(0))
    assert legal_texts(GAME, state) == ["d3", "c4", "f5", "e6"]
    assert GAME.to_text(GAME.step(state, jnp.int32(19))) == (
        "________/________/___X____/___XX___/___XO___/________/________/________ O"
    )


def test_a_player_without_a_move_passes():
    """White's only disc has black ones beside it up to the edge, so that it encloses none."""
    game = make("othello", size=4)
    state = game.from_text("____/_OXX/_XXX/_X_X O")
    assert legal_texts(game, state) == ["pass"]
    assert game.action_squares(state, 16) == ()
    following = game.step(state, jnp.int32(16))
    assert game.to_text(following) == "____/_OXX/_XXX/_X_X X"
    assert legal_texts(game, following) == ["a1", "b1", "a2"]
    # Black may not pass.
    assert game.to_text(game.step(following, jnp.int32(16))) == game.to_text(following)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_bits_draw_the_same_action_as_from_the_slots(seed):
    game = make("othello", size=4)

    def play(states, bits):
        actions = jax.vmap(game.sample_legal_action)(states, bits)
        from_slots = jax.vmap(functools.partial(Game.sample_legal_action, game))(states, bits)
        return jax.vmap(game.step)(states, actions), (actions, from_slots)

    starts = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64))
    bits = jax.random.bits(jax.random.key(seed), (game.max_plies, 64))
    _, (actions, from_slots) = jax.jit(lambda: jax.lax.scan(play, starts, bits))()
    np.testing.assert_array_equal(actions, from_slots)
    assert (np.asarray(actions) == 16).any()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("____/_OX_/_XO_/____", "a position is 4 rows of 4 characters with / between, and X or O to move"),
        ("____/_OX_/_XO_ X", "a position is 4 rows of 4 characters"),
        ("__?_/_OX_/_XO_/____ X", r"character 3 of .* is '\?'; allowed: X, O and _"),
        ("____/_OX_/__O_/____ X", "is impossible: b3 has a disc from the start"),
    ],
)
def test_impossible_text_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        make("othello", size=4).from_text(text)


@pytest.mark.parametrize("size", [2, 5, 10])
def test_other_sizes_are_refused(size):
    with pytest.raises(ValueError, match="othello: size must be 4, 6 or 8, got"):
        make("othello", size=size)


def test_an_end_tells_the_discs():
    game = make("othello", size=4)
    assert game.ending(game.from_text("XXXX/XXXX/XOOX/XXXX X")) == "Black wins, 14 to 2 discs"
    assert game.ending(game.from_text("XXXX/XXXX/OOOO/OOOO X")) == "a draw, 8 to 8 discs"


def test_the_board_is_drawn_with_its_coordinates():
    game = make("othello", size=4)
    drawn = game.draw(game.init(jax.random.key(0)))
    assert drawn.splitlines() == ["   a b c d", "1  . . . .", "2  . O X .", "3  . X O .", "4  . . . ."]
    assert action_from_text(game, game.init(jax.random.key(0)), "b1") == 1
