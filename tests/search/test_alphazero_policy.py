"""`alphazero_policy` against facts known by hand, and how it chooses an action."""

import numpy as np
import pytest
from searches import (
    BATCH,
    CONNECT2,
    HASH_EVALUATOR,
    TICTACTOE,
    HashedRow,
    assert_drawn_from,
    assert_equal_rows,
    hashed_params,
    random_positions,
    same_search,
    search,
    states_after,
    uniform_params,
)

import azjax.games
from azjax.search import evaluators
from benchmarks.rules.mnk import MnkRules

# What a search finds, known by hand.


def tictactoe_search(states, num_simulations=100):
    params = uniform_params(TICTACTOE)
    return search(params, states, game=TICTACTOE, evaluator=HASH_EVALUATOR, num_simulations=num_simulations)


def connect2_search(sequences):
    states = states_after(CONNECT2, (sequences * BATCH)[:BATCH])
    evaluator = evaluators.table(HashedRow(CONNECT2))
    return search(uniform_params(CONNECT2), states, game=CONNECT2, evaluator=evaluator, num_simulations=100)


def winning_actions(rules, position):
    """The legal actions that win at once."""
    return [a for a in rules.legal_actions(position) if rules.step(position, a).rewards[position.player] == 1]


def test_a_win_in_one_is_played():
    positions, states = random_positions(TICTACTOE, keep=winning_actions)
    result = tictactoe_search(states)
    for position, action, q_values in zip(positions, result.action, result.q_values, strict=True):
        assert action in winning_actions(MnkRules(3, 3, 3), position)
        assert q_values[action] == 1


@pytest.mark.slow
def test_equal_actions_are_visited_in_order():
    positions, states = random_positions(TICTACTOE)
    assert positions[0] == MnkRules(3, 3, 3).start()
    assert tictactoe_search(states, 1).visits[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    # Nobody can win in three plies from the start, so that all values are still 0.
    assert tictactoe_search(states, 16).visits[0].tolist() == [2, 2, 2, 2, 2, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("urgency", "visits"), [(2.0, [2, 2, 2, 2, 2, 2, 2, 1, 1]), (-2.0, [16, 0, 0, 0, 0, 0, 0, 0, 0])]
)
def test_first_play_urgency_is_the_value_of_untried_actions(urgency, visits):
    states = states_after(TICTACTOE, [[]] * BATCH)
    params, options = uniform_params(TICTACTOE), {"num_simulations": 16, "first_play_urgency": urgency}
    result = search(params, states, game=TICTACTOE, evaluator=HASH_EVALUATOR, **options)
    assert result.visits[0].tolist() == visits


def test_connect2_is_opened_in_one_of_the_two_middle_cells_which_win():
    result = connect2_search([[]])
    assert result.action[0] in (1, 2)
    assert result.q_values[0, 1:3].max() > 0.8
    assert result.value[0] > 0.5


def test_a_forced_last_move_gets_every_visit():
    # X_OX is won for O, who takes the last cell; XOX_ is drawn when O does.
    result = connect2_search([[0, 2, 3], [0, 1, 2]])
    assert result.visits[:2].tolist() == [[0, 100, 0, 0], [0, 0, 0, 100]]
    assert result.policy[:2].tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert result.q_values[:2].tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    # The root's own evaluation, 0, is one of 101 values.
    assert result.value[:2].tolist() == pytest.approx([100 / 101, 0], abs=1e-6)


def test_an_ended_game_has_no_visits_no_policy_and_no_value():
    positions, states = random_positions(TICTACTOE, keep=lambda rules, position: position.terminal)
    result = search(hashed_params(TICTACTOE), states, game=TICTACTOE, evaluator=HASH_EVALUATOR, num_simulations=16)
    assert all(position.terminal for position in positions)
    for field in (result.visits, result.policy, result.q_values, result.value):
        assert not field.any()


# The choice of action.


LEGAL = [1, 3, 4, 5, 6, 7, 8]  # of X_O______


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_actions_are_drawn_from_visits_to_the_power_of_the_inverse_temperature(temperature):
    result = same_search(temperature)
    visits = result.visits[0].astype(float)
    assert len(set(visits[visits > 0])) > 1
    if temperature == 0:
        assert (result.action == np.argmax(visits)).all()
    else:
        assert_drawn_from(result.action, visits ** (1 / temperature) / np.sum(visits ** (1 / temperature)))


def test_at_infinite_temperature_legal_actions_are_drawn_uniformly():
    result = same_search(np.inf)
    assert_drawn_from(result.action, np.isin(np.arange(9), LEGAL) / len(LEGAL))


def test_near_temperature_0_only_the_most_visited_actions_are_drawn():
    result = same_search(1e-3)
    assert set(result.action) == set(np.flatnonzero(result.visits[0] == result.visits[0].max()))


def test_the_training_target_does_not_depend_on_the_temperature():
    for temperature in (0.5, np.inf):
        np.testing.assert_array_equal(same_search(temperature).policy, same_search(0.0).policy)


def test_equal_keys_choose_equally_and_others_do_not():
    assert_equal_rows(same_search(1.0, key_seed=5), same_search(1.0, key_seed=5))
    assert (same_search(1.0, key_seed=5).action != same_search(1.0, key_seed=6).action).any()


def test_equal_evaluators_are_one():
    assert evaluators.table(HashedRow(TICTACTOE)) == evaluators.table(HashedRow(azjax.games.make("tictactoe")))
    assert evaluators.uniform(TICTACTOE) == evaluators.uniform(azjax.games.make("tictactoe"))
    assert hash(evaluators.uniform(TICTACTOE)) == hash(evaluators.uniform(azjax.games.make("tictactoe")))
