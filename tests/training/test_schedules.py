"""Schedules over the iterations of a run."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.games.registry import make
from azjax.training import Config, Hyper, init
from azjax.training.schedules import (
    iterations_within,
    mean_simulations,
    random_start_plies,
    simulation_counts,
    temperature,
)
from azjax.training.self_play import self_play

DOUBLING = Config(num_simulations=16, first_simulations=4, doubling_iterations=10)
STARTS = Config(random_start_plies=8, hyper=Hyper(schedule_iterations=12.0, final_random_start_plies=2.0))


def _play(config):
    """A jitted `play(iteration)` of tic-tac-toe: the games after the iteration, and the steps, on the host."""
    game, hyper = make("tictactoe"), jax.tree.map(jnp.float32, config.hyper)
    network = config.make_network(game)

    @jax.jit
    def play(iteration):
        state = init(game, config, 0, hyper)
        return self_play(game, network, config, state.variables, hyper, iteration, jax.random.key(1), state.games)

    return lambda iteration: jax.device_get(play(jnp.int32(iteration)))


@pytest.mark.parametrize(
    ("first", "last", "counts"), [(4, 16, (4, 8, 16)), (3, 10, (3, 6, 10)), (1, 2, (1, 2)), (0, 16, (16,))]
)
def test_the_simulations_double_up_to_their_number(first, last, counts):
    assert simulation_counts(Config(num_simulations=last, first_simulations=first)) == counts


def test_the_simulations_double_every_ten_iterations():
    found = [mean_simulations(DOUBLING, iteration) for iteration in (0, 9, 10, 19, 20, 1000)]
    assert found == [4, 4, 8, 8, 16, 16]


def test_without_a_schedule_every_iteration_has_the_mean_of_full_and_fast_searches():
    config = Config(num_simulations=32, fast_simulations=8, hyper=Hyper(full_search_fraction=0.25))
    assert [mean_simulations(config, iteration) for iteration in (0, 1000)] == [14, 14]


def test_a_budget_is_spent_with_the_costs_of_each_number_of_simulations():
    # Ten iterations cost 40, the next ten 80, and then each costs 16.
    spent = [20, 40, 80, 120, 136, 280]
    assert [iterations_within(DOUBLING, budget, [4, 8, 16]) for budget in spent] == [5, 10, 15, 20, 21, 30]
    assert iterations_within(DOUBLING, 120, [4]) == 30


@pytest.mark.slow
def test_searches_of_self_play_have_the_simulations_of_the_iteration():
    config = dataclasses.replace(
        SMALL, num_simulations=12, first_simulations=3, doubling_iterations=5, steps_per_iteration=8, replay_size=128
    )
    play = _play(config)
    for iteration, count in ((0, 3), (4, 3), (5, 6), (9, 6), (10, 12), (99, 12)):
        # The policy is made of whole visits, and not of fewer.
        visits = play(iteration)[1].policy * np.arange(1, count + 1)[:, None, None, None]
        is_whole = np.isclose(visits, np.round(visits), atol=1e-4).all(axis=(1, 2, 3))
        np.testing.assert_array_equal(is_whole, np.arange(1, count + 1) == count)


@pytest.mark.parametrize(
    ("iteration", "expected"), [(0, 1.0), (25, 0.8), (50, 0.6), (100, 0.2), (101, 0.2), (10**6, 0.2)]
)
def test_the_temperature_moves_linearly_and_stays_at_its_final_value(iteration, expected):
    hyper = Hyper(temperature=1.0, schedule_iterations=100.0, final_temperature=0.2)
    assert float(temperature(hyper, jnp.int32(iteration))) == pytest.approx(expected, rel=1e-6)


def test_the_final_temperature_is_exact():
    hyper = Hyper(temperature=0.7, schedule_iterations=3.0, final_temperature=0.0)
    assert float(temperature(hyper, jnp.int32(3))) == 0.0


@pytest.mark.parametrize(
    "hyper", [Hyper(temperature=0.7, final_temperature=0.2), Hyper(temperature=0.7, schedule_iterations=9.0)]
)
def test_without_iterations_or_a_final_value_nothing_moves(hyper):
    for iteration in (0, 5, 100):
        assert float(temperature(hyper, jnp.int32(iteration))) == np.float32(hyper.temperature)
        assert random_start_plies(STARTS, hyper, jnp.int32(iteration)) is None


@pytest.mark.parametrize(("iteration", "plies"), [(0, 8), (2, 7), (6, 5), (7, 4), (12, 2), (13, 2), (10**6, 2)])
def test_the_random_plies_move_linearly_and_are_rounded(iteration, plies):
    assert int(random_start_plies(STARTS, STARTS.hyper, jnp.int32(iteration))) == plies


@pytest.mark.slow
def test_games_start_after_as_many_random_plies_as_the_schedule_allows_and_no_more():
    config = SMALL.replace(
        num_games=512,
        steps_per_iteration=2,
        num_simulations=1,
        replay_size=4096,
        truncate_at_ply=1,
        random_start_plies=6,
        schedule_iterations=10.0,
        final_random_start_plies=1.0,
    )
    play, game = _play(config), make("tictactoe")
    for iteration, most in ((0, 6), (2, 5), (6, 3), (10, 1), (500, 1)):
        games, steps = play(iteration)
        # Each game is truncated after its first ply, and so all stand at new starts.
        assert steps.ended.all()
        stones = np.asarray(jax.vmap(lambda state: game.observe(state).sum())(games.states)).astype(int)
        assert set(stones) == set(range(most + 1))


@pytest.mark.slow
def test_moves_are_drawn_with_the_temperature_of_the_iteration():
    hyper = {"temperature": 1e6, "schedule_iterations": 4.0, "final_temperature": 0.0, "dirichlet_fraction": 0.0}
    play = _play(SMALL.replace(num_games=16, num_simulations=16, steps_per_iteration=2, replay_size=256, **hyper))
    for iteration, number in ((0, 5), (3, 5), (4, 1), (50, 1)):
        # All games begin at the same position: without a temperature they make the same move.
        boards = play(iteration)[1].states
        moved = np.asarray(jax.vmap(make("tictactoe").observe)(jax.tree.map(lambda leaf: leaf[1], boards)))
        different = len(np.unique(moved.reshape(16, -1), axis=0))
        assert different == 1 if number == 1 else different >= number
