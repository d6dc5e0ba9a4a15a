"""Small boards number their positions; the law itself is one of `check_game`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.game import random_legal_action
from azjax.games.protocols import is_numbered
from azjax.games.registry import make

SMALL = [
    ("connect_four", {"columns": 4, "rows": 4}, 31**4),
    ("connect_four", {"columns": 4, "rows": 7}, 255**4),
    ("hex", {"size": 3}, 3**9),
    ("hex", {"size": 4, "swap": True}, 2 * 3**16),
    ("othello", {"size": 4}, 2 * 3**16),
    ("santorini", {"size": 3, "workers": 2}, 5**9 * 36**2),
]


@pytest.mark.parametrize(("name", "options", "numbers"), SMALL, ids=str)
def test_positions_of_random_games_come_back_from_their_numbers(name, options, numbers):
    game = make(name, **options)
    assert is_numbered(game)
    assert game.num_position_numbers == numbers

    def play(states, key):
        actions = jax.vmap(lambda key, state: random_legal_action(game, key, state))(jax.random.split(key, 64), states)
        found = jax.vmap(game.position_number)(states)
        return jax.vmap(game.step)(states, actions), (states, found, jax.vmap(game.from_position_number)(found))

    starts = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64))
    keys = jax.random.split(jax.random.key(1), game.max_plies)
    states, found, again = jax.device_get(jax.jit(lambda: jax.lax.scan(play, starts, keys)[1])())
    assert found.max() < numbers
    assert again.terminated[states.terminated].all()  # a number of a finished position gives one
    running = ~states.terminated
    assert running.sum() > 300
    for ours, theirs in zip(jax.tree.leaves(states), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(ours[running], theirs[running])
    texts = {game.to_text(jax.tree.map(lambda leaf: leaf[ply, 0], states)) for ply in range(6)}
    assert len(np.unique(found[:6, 0])) == len(texts)


@pytest.mark.parametrize(
    ("name", "options"),
    [("connect_four", {}), ("hex", {"size": 5}), ("othello", {"size": 6}), ("santorini", {"size": 5, "workers": 2})],
)
def test_32_bits_do_not_hold_the_numbers_of_larger_boards(name, options):
    assert not is_numbered(make(name, **options))


def test_a_number_is_written_by_hand():
    """Columns of a red stone under a yellow one (the bits 1, 0 under a 1: 5), of nothing (1), and of a red one (3)."""
    game = make("connect_four", columns=3, rows=2, in_a_row=3)
    state = game.from_text("O__/X_X")
    assert int(game.position_number(state)) == (5 - 1) + 7 * (1 - 1) + 49 * (3 - 1)
    numbers = jnp.uint32([3 - 1, 2 - 1, (3 - 1) + 7 * (3 - 1)])  # a red stone; impossible: a yellow one, two red ones
    assert jax.vmap(game.from_position_number)(numbers).terminated.tolist() == [False, True, True]
    game = make("santorini", size=3, workers=2)  # squares 1 and 8, 0 and 3: 8 * 7 / 2 + 1 = 29, 3
    state = game.from_text("001000020" + "0122" + "0010")
    assert int(game.position_number(state)) == ((1 * 5**6 + 2 * 5) * 36 + 29) * 36 + 3
    # Boards without own pawns: 1 + 12 + 66 + 220; with one and no other: 12. Then 11 boards for each square of one.
    game, first = make("breakthrough", columns=3, rows=4), (1 + 12 + 66 + 220) + 12
    assert int(game.position_number(game.from_text("b../w../.../... w"))) == 2 * (first + 3 * 11)
    numbers = 2 * (first + jnp.uint32([33, 33 + 10, 0]))  # running; over: the other's pawn at its end, the own one
    assert jax.vmap(game.from_position_number)(numbers).terminated.tolist() == [False, True, True]
    game = make("hex", size=2)
    assert int(game.position_number(game.from_text("X_/_O X"))) == 1 + 2 * 27
    assert bool(game.from_position_number(jnp.uint32(1 + 3)).terminated)  # two stones of player 0
