"""What the solver in the search proves is true, and it changes nothing before it proves something."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.evaluation import solve
from azjax.games.mnk import Mnk
from azjax.search import alphazero_policy, evaluators, gumbel_policy, uct_policy

TICTACTOE = azjax.make("tictactoe")
KEY = jax.random.key(0)


both_searches = pytest.mark.parametrize("policy", [alphazero_policy, gumbel_policy])


def search(game, states, num_simulations, policy=alphazero_policy, **options):
    evaluator = evaluators.uniform(game)
    options = {"game": game, "evaluator": evaluator, "num_simulations": num_simulations, **options}
    return policy(None, KEY, states, **options)


@pytest.fixture(scope="module")
def late():
    """64 unfinished positions of tic-tac-toe with four to six stones, their values, and which actions are best."""
    solution = solve(TICTACTOE)
    stones = np.asarray(jax.jit(jax.vmap(TICTACTOE.observe))(solution.states)).reshape(len(solution.values), -1).sum(1)
    fitting = np.flatnonzero(~solution.terminated & (stones >= 4) & (stones <= 6))
    chosen = np.random.default_rng(0).choice(fitting, 64, replace=False)
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf[chosen]), solution.states)
    known, values, actions, best = jax.device_get(solution.best_moves().best_moves(TICTACTOE, states))
    assert known.all()
    assert set(values) == {-1, 0, 1}
    return states, values, [set(row[mask]) for row, mask in zip(actions, best, strict=True)]


@pytest.mark.parametrize("policy", [alphazero_policy, uct_policy])
def test_every_late_position_is_proven_with_its_value_and_a_best_move(policy, late):
    states, values, best = late
    options = {"game": TICTACTOE, "evaluator": evaluators.uniform(TICTACTOE), "num_simulations": 2000, "solver": True}
    result = policy(None, KEY, states, **options)
    np.testing.assert_array_equal(result.bounds, np.stack([values, values], axis=1))
    np.testing.assert_array_equal(result.value, values)
    assert all(action in moves for action, moves in zip(result.action.tolist(), best, strict=True))
    assert (result.visits.sum(axis=1) < 2000).all()


@pytest.mark.slow_except("alphazero_policy")
@both_searches
def test_the_value_always_lies_within_the_bounds(policy, late):
    states, values, _ = late
    result = search(TICTACTOE, states, 20, policy, solver=True)
    proven = result.bounds[:, 0] == result.bounds[:, 1]
    assert 0 < proven.sum() < len(values)
    assert (result.bounds[:, 0] <= values).all()
    assert (values <= result.bounds[:, 1]).all()


@both_searches
def test_a_root_plays_a_best_move_as_soon_as_it_is_proven_and_its_policy_is_made_of_such(policy, late):
    states, _, best = late
    result = jax.device_get(search(TICTACTOE, states, 20, policy, solver=True))
    proven = np.flatnonzero(result.bounds[:, 0] == result.bounds[:, 1])
    for row in proven:
        assert result.action[row] in best[row]
        assert set(np.flatnonzero(result.policy[row])) <= best[row]
    np.testing.assert_allclose(result.policy.sum(axis=1), 1, atol=1e-6)


@pytest.mark.slow
def test_a_gumbel_search_gives_no_policy_to_a_move_that_is_proven_lost():
    # X threatens c3: all other moves of O lose, two plies later.
    state = jax.tree.map(lambda leaf: leaf[None], TICTACTOE.from_text("XX__O____"))
    result = jax.device_get(search(TICTACTOE, state, 400, gumbel_policy, solver=True))
    assert result.action == 2
    assert np.flatnonzero(result.policy[0]).tolist() == [2]
    plain = jax.device_get(search(TICTACTOE, state, 400, gumbel_policy))
    assert np.flatnonzero(plain.policy[0]).tolist() == [2, 3, 5, 6, 7, 8]


@pytest.mark.slow
@both_searches
def test_before_anything_is_proven_it_changes_nothing(policy):
    states = jax.vmap(TICTACTOE.init)(jax.random.split(KEY, 2))
    plain, solved = (search(TICTACTOE, states, 60, policy, solver=solver) for solver in (False, True))
    np.testing.assert_array_equal(plain.visits, solved.visits)
    np.testing.assert_array_equal(plain.action, solved.action)
    np.testing.assert_array_equal(plain.policy, solved.policy)
    np.testing.assert_array_equal(plain.value, solved.value)
    assert plain.bounds.tolist() == solved.bounds.tolist() == [[-1, 1], [-1, 1]]


def test_blocked_edges_are_proven_too():
    # X is one move away from three in a row, and in the other position two, by a pair that is open on both sides.
    game = Mnk(5, 4, 3)
    assert game.max_legal_actions > 16
    texts = ["XX___OO_____________", "O___________X_______"]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.from_text, texts))
    result = search(game, states, 3000, solver=True)
    assert result.bounds.tolist() == [[1, 1], [1, 1]]
    assert result.action[0] == 2


def test_where_all_visited_moves_are_lost_the_others_remain_by_their_priors():
    state = jax.tree.map(lambda leaf: leaf[None], TICTACTOE.from_text("XX__O____"))

    def evaluator(params, key, states):
        # O looks at the losing move on 3 first, and X answers by winning on 2.
        to_move = jnp.array([[0, 0, 9, 0, 0, 0, 0, 0, 0], [0, 0, 0, 9, 0, 0, 0, 0, 2]], jnp.float32)
        return to_move[states.current_player], jnp.zeros(len(states.terminated))

    result = search(TICTACTOE, state, 2, evaluator=evaluator, solver=True)
    assert result.visits[0].tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0]
    assert result.action.tolist() == [8]
    assert result.policy[0, 3] == 0
    np.testing.assert_allclose(result.policy[0, 8] / result.policy[0, 5], np.exp(2), rtol=1e-5)
