import dataclasses
import math

import jax
import pytest

from azjax.evaluation import MoveChoice, optimal_player, random_player
from azjax.evaluation.exact import versus
from azjax.evaluation.matches import make_device_match
from azjax.evaluation.player_tables import optimal_table, random_table
from azjax.games.registry import make


@dataclasses.dataclass(frozen=True)
class _Always:
    """Plays the action that is its parameter."""

    num_actions: int

    def __call__(self, params, key, states):
        probabilities = jax.nn.one_hot(jax.numpy.full(states.terminated.shape, params), self.num_actions)
        return MoveChoice(probabilities, jax.numpy.zeros(len(probabilities)), probabilities)


def test_points_agree_with_the_exact_expectation(solution_of):
    game = make("tictactoe")
    optimal, random = optimal_player(solution_of("tictactoe")), random_player(game)
    match = jax.jit(make_device_match(game, optimal.policy, random.policy, num_games=4000, max_plies=9))
    points = float(match(optimal.params, None, jax.random.key(0)))
    expected = versus(solution_of("tictactoe"), optimal_table, random_table).alternating.score
    assert 0.9 < expected < 1
    assert abs(points - expected) < 4 * math.sqrt(expected * (1 - expected) / 4000)
    other = jax.jit(make_device_match(game, random.policy, optimal.policy, num_games=4000, max_plies=9))
    assert abs(float(other(None, optimal.params, jax.random.key(1))) - (1 - expected)) < 0.02


def test_every_second_game_has_the_other_seat(solution_of):
    """Connect-2 is a win for the first mover."""
    game = make("connect2")
    player = optimal_player(solution_of("connect2"))
    for num_games, points in ((1, 1.0), (2, 0.5), (3, 2 / 3)):
        match = jax.jit(make_device_match(game, player.policy, player.policy, num_games=num_games, max_plies=4))
        assert float(match(player.params, player.params, jax.random.key(0))) == pytest.approx(points)


def test_a_player_that_moves_twice_in_a_row_chooses_both_moves(nim):
    """After player 0 took the heap of one, player 1 takes both stones of the other, one by one, and wins."""
    game = nim((1, 2), turn=2)
    policy = _Always(game.num_actions)
    match = jax.jit(make_device_match(game, policy, policy, num_games=1, max_plies=3))
    assert float(match(0, 3, jax.random.key(0))) == 0


def test_a_game_longer_than_max_plies_is_a_draw():
    game = make("tictactoe")
    policy = _Always(9)
    match = jax.jit(make_device_match(game, policy, policy, num_games=2, max_plies=1))
    assert float(match(0, 8, jax.random.key(0))) == 0.5


def test_games_begin_at_the_given_start():
    game = make("tictactoe")
    state = game.from_text("XX_OO____")
    match = jax.jit(make_device_match(game, _Always(9), _Always(9), num_games=1, max_plies=9, start=lambda key: state))
    assert float(match(2, 5, jax.random.key(0))) == 1
    assert float(match(8, 5, jax.random.key(0))) == 0
