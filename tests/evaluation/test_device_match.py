import dataclasses
import math

import jax
import numpy as np
import pytest

from azjax.evaluation import MoveChoice, optimal_player, random_player, records_of
from azjax.evaluation.device_match import make_device_match
from azjax.evaluation.exact import versus
from azjax.evaluation.player_tables import optimal_table, random_table
from azjax.games.registry import make
from azjax.training import Config
from azjax.training.self_play import make_start


@dataclasses.dataclass(frozen=True)
class _Always:
    """Plays the action that is its parameter."""

    num_actions: int

    def __call__(self, params, key, states):
        probabilities = jax.nn.one_hot(jax.numpy.full(states.terminated.shape, params), self.num_actions)
        return MoveChoice(probabilities, jax.numpy.zeros(len(probabilities)), probabilities)


class _Lowest:
    """Plays the legal action with the lowest number."""

    def __call__(self, params, key, states):
        lowest = jax.vmap(make("tictactoe").legal_action_mask)(states).argmax(-1)
        probabilities = jax.nn.one_hot(lowest, 9)
        return MoveChoice(probabilities, jax.numpy.zeros(len(probabilities)), probabilities)


_LOWEST = _Lowest()


def test_points_agree_with_the_exact_expectation(solution_of):
    game = make("tictactoe")
    optimal, random = optimal_player(solution_of("tictactoe")), random_player(game)
    match = jax.jit(make_device_match(game, optimal.policy, random.policy, num_games=4000, max_plies=9))
    points = float(match(optimal.params, None, jax.random.key(0)).score)
    expected = versus(solution_of("tictactoe"), optimal_table, random_table).alternating.score
    assert 0.9 < expected < 1
    assert abs(points - expected) < 4 * math.sqrt(expected * (1 - expected) / 4000)
    other = jax.jit(make_device_match(game, random.policy, optimal.policy, num_games=4000, max_plies=9))
    assert abs(float(other(None, optimal.params, jax.random.key(1)).score) - (1 - expected)) < 0.02


@pytest.mark.slow
def test_every_second_game_has_the_other_seat(solution_of):
    """Connect-2 is a win for the first mover."""
    game = make("connect2")
    player = optimal_player(solution_of("connect2"))
    for num_games, points in ((1, 1.0), (2, 0.5), (3, 2 / 3)):
        match = jax.jit(make_device_match(game, player.policy, player.policy, num_games=num_games, max_plies=4))
        assert float(match(player.params, player.params, jax.random.key(0)).score) == pytest.approx(points)


def test_a_player_that_moves_twice_in_a_row_chooses_both_moves(nim):
    """After player 0 took the heap of one, player 1 takes both stones of the other, one by one, and wins."""
    game = nim((1, 2), turn=2)
    policy = _Always(game.num_actions)
    match = jax.jit(make_device_match(game, policy, policy, num_games=1, max_plies=3))
    assert float(match(0, 3, jax.random.key(0)).score) == 0


def test_a_game_longer_than_max_plies_is_a_draw():
    game = make("tictactoe")
    policy = _Always(9)
    match = jax.jit(make_device_match(game, policy, policy, num_games=2, max_plies=1))
    assert float(match(0, 8, jax.random.key(0)).score) == 0.5


def test_games_begin_at_the_given_start():
    game = make("tictactoe")
    state = game.from_text("XX_OO____")
    match = jax.jit(make_device_match(game, _Always(9), _Always(9), num_games=1, max_plies=9, start=lambda key: state))
    assert float(match(2, 5, jax.random.key(0)).score) == 1
    assert float(match(8, 5, jax.random.key(0)).score) == 0


def test_the_games_are_told_on_the_host():
    """Both take the lowest free cell: X wins with the diagonal, whose last cell is the seventh."""
    game = make("tictactoe")
    match = jax.jit(make_device_match(game, _LOWEST, _LOWEST, num_games=3, max_plies=9))
    result = match(None, None, jax.random.key(0)).result("one", "other")
    assert result.actions == ((0, 1, 2, 3, 4, 5, 6),) * 3
    assert (result.first, result.second, result.rewards) == ("one", "other", (1.0, -1.0, 1.0))
    assert [record.players[0] for record in records_of(game, result)] == ["one", "other", "one"]
    assert records_of(game, result)[0].replay()[0][-1].terminated
    cut = jax.jit(make_device_match(game, _LOWEST, _LOWEST, num_games=2, max_plies=4))
    result = cut(None, None, jax.random.key(0)).result("one", "other")
    assert result.actions == ((0, 1, 2, 3),) * 2
    assert [record.rewards for record in records_of(game, result)] == [None, None]


def test_two_games_have_one_start_and_each_policy_each_side_of_it():
    game = make("tictactoe")
    keep = make_start(game, Config(random_start_plies=5))
    match = jax.jit(make_device_match(game, _LOWEST, _LOWEST, num_games=6, max_plies=9, start=keep))
    played = match(None, None, jax.random.key(0))
    starts = [game.to_text(jax.tree.map(lambda leaf, row=row: leaf[row], played.starts)) for row in range(6)]
    assert starts[::2] == starts[1::2]
    assert len(set(starts)) > 1
    # The same games from the other side.
    np.testing.assert_array_equal(played.rewards[::2], -played.rewards[1::2])
    assert float(played.score) == 0.5
