"""Many positions of a player without a network are split over the devices, and its moves do not depend on those."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from azjax.evaluation import play_match, random_player
from azjax.evaluation.seats import PART, choose_in_parts
from azjax.games.registry import make

GAME = make("tictactoe")
COUNT = 2 * PART + 5

PROGRAM = f"""
import jax
from azjax.evaluation import uct_player
from azjax.evaluation.seats import choose_in_parts
from azjax.games.registry import make
game = make("tictactoe")
states = jax.device_get(jax.vmap(game.init)(jax.random.split(jax.random.key(0), {COUNT})))
moves = choose_in_parts(uct_player(game, num_simulations=4), jax.random.key(1), states)
print(jax.device_count(), *moves.tolist())
"""


def moves_on(devices):
    flags = f"--xla_force_host_platform_device_count={devices} {os.environ.get('XLA_FLAGS', '')}"
    environment = {**os.environ, "XLA_FLAGS": flags}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found, *moves = map(int, done.stdout.split())
    assert found == devices
    return moves


@pytest.mark.slow
def test_the_moves_are_the_same_on_any_number_of_devices():
    one, two = moves_on(1), moves_on(2)
    assert len(one) == COUNT
    assert one == two
    assert set(one) <= set(range(9))


def test_each_part_draws_with_its_own_key():
    states = jax.device_get(jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), COUNT)))
    moves = choose_in_parts(random_player(GAME), jax.random.key(0), states)
    assert moves.shape == (COUNT,)
    assert set(moves.tolist()) == set(range(9))
    assert not np.array_equal(moves[:PART], moves[PART : 2 * PART])


@pytest.mark.parametrize(("batch_size", "timed"), [(1, True), (4, False)])
def test_moves_are_timed_where_one_game_is_played_at_a_time(batch_size, timed):
    player = random_player(GAME)
    match = play_match(GAME, player, player, 4, jax.random.key(0), batch_size=batch_size)
    # The first player moves first in games 0 and 2.
    moves = [sum((plies + (game + side + 1) % 2) // 2 for game, plies in enumerate(match.plies)) for side in (0, 1)]
    assert [len(seconds) for seconds in match.move_seconds] == (moves if timed else [0, 0])
    assert all(seconds > 0 for side in match.move_seconds for seconds in side)
