import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.evaluation import perft, solve
from azjax.games import check_game
from azjax.games.game import Game
from azjax.games.protocols import action_from_text, legal_texts
from azjax.games.registry import make
from benchmarks.rules.hex import HexRules


def _after(game, *moves):
    state = game.init(jax.random.key(0))
    for move in moves:
        state = game.step(state, jnp.int32(action_from_text(game, state, move)))
    return state


@pytest.mark.slow_except("2-True-10", "3-False-20", "4-True-20")
@pytest.mark.parametrize(
    ("size", "swap", "games"),
    [(2, True, 10), (3, False, 20), (4, True, 20), (11, True, 3), pytest.param(13, False, 3, marks=pytest.mark.slow)],
)
def test_random_games_agree_with_plain_python_rules(size, swap, games):
    generator, game, rules = random.Random(0), make("hex", size=size, swap=swap), HexRules(size, swap)
    step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    for number in range(games):
        state, plain = game.init(jax.random.key(0)), rules.start()
        while not plain.terminal:
            legal = rules.legal_actions(plain)
            assert game.to_text(state) == rules.text(plain)
            assert np.flatnonzero(mask(state)).tolist() == legal
            assert int(state.current_player) == plain.player
            action = legal[-1] if number % 2 and legal[-1] == size**2 else generator.choice(legal)
            state, plain = step(state, jnp.int32(action)), rules.step(plain, action)
            assert bool(state.terminated) == plain.terminal
            assert tuple(state.rewards.tolist()) == plain.rewards
        assert game.to_text(game.from_text(rules.text(plain))) == rules.text(plain)


@pytest.mark.parametrize("swap", [False, True])
def test_random_games_agree_with_openspiel(swap):
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    game, rules = make("hex", size=5, swap=swap), pyspiel.load_game(f"hex(board_size=5,swap={swap})")
    generator, step, mask = np.random.default_rng(0), jax.jit(game.step), jax.jit(game.legal_action_mask)
    swaps = 0
    for _ in range(100):
        state, theirs = game.init(jax.random.key(0)), rules.new_initial_state()
        while not theirs.is_terminal():
            legal = np.flatnonzero(mask(state)).tolist()
            assert legal == theirs.legal_actions()
            assert int(state.current_player) == theirs.current_player()
            action = int(generator.choice(legal))
            swaps += action == 25
            state = step(state, jnp.int32(action))
            theirs.apply_action(action)
        assert bool(state.terminated)
        assert state.rewards.tolist() == theirs.returns()
    assert (swaps > 0) == swap


@pytest.mark.slow
@pytest.mark.parametrize(("size", "swap"), [(2, True), pytest.param(13, True, marks=pytest.mark.slow)])
def test_other_sizes_keep_every_law(size, swap):
    check_game(make("hex", size=size, swap=swap), num_games=4)


def test_the_numbers_of_games_are_those_of_plain_rules():
    def count(rules, position, depth):
        if depth == 0:
            return 1
        return sum(count(rules, rules.step(position, action), depth - 1) for action in rules.legal_actions(position))

    for size, swap in ((3, False), (3, True)):
        rules = HexRules(size, swap)
        counts = [count(rules, rules.start(), depth) for depth in (1, 2, 3, 4, 5)]
        assert perft(make("hex", size=size, swap=swap), 5) == counts


@functools.cache
def _value(rules, position):
    """The result for the player to move, by plain minimax; every step is made by the player to move."""
    if position.terminal:
        return -1
    return max(-_value(rules, rules.step(position, action)) for action in rules.legal_actions(position))


@pytest.mark.parametrize("swap", [False, True])
def test_the_exact_values_on_three_rows_are_those_of_plain_minimax(swap):
    """Without the swap the first player wins, as Nash showed for all sizes; with it the second player does."""
    rules, solution = HexRules(3, swap), solve(make("hex", size=3, swap=swap))
    assert solution.summary().value_first_player == (-1 if swap else 1)
    following = [_value(rules, rules.step(rules.start(), action)) for action in range(9)]
    best = [action for action in range(9) if -following[action] == (-1 if swap else 1)]
    assert list(solution.summary().best_first_actions) == best


def test_a_chain_wins_from_edge_to_edge():
    red = _after(make("hex", size=3), "b1", "a1", "b2", "a2", "b3")
    assert bool(red.terminated)
    assert red.rewards.tolist() == [1, -1]
    blue = _after(make("hex", size=3), "a1", "a2", "b1", "b2", "a3", "c2")
    assert blue.rewards.tolist() == [-1, 1]
    # b1 touches a2, to its lower left, but a1 does not touch b2.
    assert bool(_after(make("hex", size=2), "b1", "a1", "a2").terminated)
    assert not bool(_after(make("hex", size=2), "a1", "b1", "b2").terminated)


def test_the_swap_mirrors_the_first_stone():
    game = make("hex", size=4, swap=True)
    state = _after(game, "c1")
    assert legal_texts(game, state)[-1] == "swap"
    assert game.action_squares(state, 16) == ()
    swapped = game.step(state, jnp.int32(16))
    assert game.to_text(swapped) == "____/____/O___/____ X"
    assert "swap" not in legal_texts(game, swapped)
    assert game.to_text(game.step(swapped, jnp.int32(16))) == game.to_text(swapped)
    assert game.to_text(game.from_text("____/____/O___/____ X")) == "____/____/O___/____ X"


def test_the_same_bits_draw_the_same_action_as_from_the_slots():
    game = make("hex", size=3, swap=True)

    def play(states, bits):
        actions = jax.vmap(game.sample_legal_action)(states, bits)
        from_slots = jax.vmap(functools.partial(Game.sample_legal_action, game))(states, bits)
        return jax.vmap(game.step)(states, actions), (actions, from_slots)

    starts = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64))
    bits = jax.random.bits(jax.random.key(1), (game.max_plies + 1, 64))
    _, (actions, from_slots) = jax.jit(lambda: jax.lax.scan(play, starts, bits))()
    np.testing.assert_array_equal(actions, from_slots)
    assert (np.asarray(actions) == 9).any()


def test_the_mover_sees_its_stones_first_and_who_it_is():
    game = make("hex", size=2)
    state = _after(game, "a1")
    seen = np.asarray(game.observe(state))
    assert seen.shape == (2, 2, 3)
    assert seen[..., 0].sum() == 0
    assert seen[0, 0, 1] == 1
    assert (seen[..., 2] == 1).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("___/___/___", "3 rows of 3 characters with / between, and X or O to move"),
        ("___/___/__ X", "3 rows of 3 characters"),
        ("___/_?_/___ X", r"character 6 of .* is '\?'; allowed: X, O and _"),
        ("XX_/___/___ O", "has 2 X and 0 O; with O to move there are 1 X"),
        ("O__/___/___ X", "has 0 X and 1 O; with X to move there are 1 X"),
        ("X__/X__/X__ O", "has 3 X and 0 O"),
        ("XOO/XO_/X__ X", "X has won, and is to move"),
    ],
)
def test_impossible_text_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        make("hex", size=3).from_text(text)


def test_a_chain_that_was_complete_before_the_last_move_is_refused():
    # Both columns of Red are chains, so the game was over before the last stone.
    with pytest.raises(ValueError, match="has chains that no last move completes"):
        make("hex", size=4).from_text("XXOO/XXOO/XXO_/XXOO O")


@pytest.mark.parametrize("size", [1, 14])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(ValueError, match=r"hex: size must be 2\.\.13, got"):
        make("hex", size=size)


def test_the_board_is_drawn_as_a_rhombus():
    drawn = make("hex", size=3).draw(make("hex", size=3).from_text("_X_/__O/___ X"))
    assert drawn.splitlines() == ["    a b c", " 1  . X .", "  2  . . O", "   3  . . ."]
