import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.networks import Mlp
from azjax.search import alphazero_policy, evaluators

GAME = make("tictactoe")
MANY = 4000


def _states(*texts):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[GAME.from_text(text) for text in texts])


def _evaluate(evaluator, states, params=None, seed=0):
    return jax.jit(evaluator)(params, jax.random.key(seed), states)


@pytest.mark.parametrize("make_evaluator", [evaluators.uniform, evaluators.rollout, evaluators.random])
def test_evaluators_of_equal_games_are_equal(make_evaluator):
    assert make_evaluator(make("tictactoe")) == make_evaluator(make("tictactoe"))
    assert hash(make_evaluator(make("tictactoe"))) == hash(make_evaluator(make("tictactoe")))
    assert make_evaluator(make("tictactoe")) != make_evaluator(make("connect2"))


def test_uniform_returns_zeros():
    logits, value = _evaluate(evaluators.uniform(GAME), _states("_________", "XO_______"))
    assert logits.shape == (2, 9)
    assert not np.asarray(logits).any()
    assert not np.asarray(value).any()


def test_a_rollout_scores_forced_endings_for_the_player_to_move():
    # One empty cell: X completes the left column in the first; in the second the last stone makes a draw.
    logits, value = _evaluate(evaluators.rollout(GAME), _states("XOXXOO_XO", "XOXXOOOX_"))
    np.testing.assert_array_equal(value, [1.0, 0.0])
    assert not np.asarray(logits).any()


def test_the_mean_of_rollouts_from_the_start_is_that_of_random_play():
    """Uniform play wins tic-tac-toe with 737/1260 for X and 121/420 for O: the mean result is 187/630."""
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf, MANY, axis=0), _states("_________"))
    _, value = _evaluate(evaluators.rollout(GAME), states)
    mean = 737 / 1260 - 121 / 420
    assert abs(float(value.mean()) - mean) < 4 * 0.9 / np.sqrt(MANY)


def test_a_finished_game_rolls_out_to_nothing():
    _, value = _evaluate(evaluators.rollout(GAME), _states("XXXOO____"))
    assert float(value[0]) == 0


@pytest.mark.slow
def test_random_depends_on_the_key():
    states = _states(*["_________"] * 500)
    logits, value = _evaluate(evaluators.random(GAME), states)
    other_logits, other_value = _evaluate(evaluators.random(GAME), states, seed=1)
    assert not np.array_equal(logits, other_logits)
    assert not np.array_equal(value, other_value)
    assert np.all(np.abs(value) <= 1)
    assert abs(float(value.mean())) < 4 / np.sqrt(3 * 500)


def test_a_table_is_read_at_the_row_of_the_position():
    params = (jnp.arange(27.0).reshape(3, 9), jnp.array([0.1, 0.2, 0.3]))

    def number_of_stones(state):
        return jnp.sum(GAME.observe(state)).astype(jnp.int32)

    logits, value = _evaluate(
        evaluators.table(number_of_stones), _states("X________", "_________", "X___O____"), params
    )
    np.testing.assert_array_equal(logits, params[0][jnp.array([1, 0, 2])])
    np.testing.assert_array_equal(value, params[1][jnp.array([1, 0, 2])])


def test_the_network_evaluator_returns_the_output_of_the_network():
    network = Mlp(8, 1).for_game(GAME)
    variables = network.init(jax.random.key(0), GAME)
    states = _states("X________", "_________")
    logits, value = _evaluate(evaluators.network(network, GAME), states, variables)
    observations = jax.vmap(GAME.observe)(states)
    expected, _ = network.apply(variables, observations, train=False)
    np.testing.assert_allclose(logits, expected.prior_logits, atol=1e-6)
    np.testing.assert_allclose(value, expected.value, atol=1e-6)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("make_evaluator", [evaluators.uniform, evaluators.rollout, evaluators.random])
def test_a_search_with_it_lowers_for_accelerators(make_evaluator, platform):
    states = jax.eval_shape(lambda: jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 4)))
    search = functools.partial(alphazero_policy, game=GAME, evaluator=make_evaluator(GAME), num_simulations=8)
    traced = jax.jit(search).trace(None, jax.random.key(0), states)
    assert traced.lower(lowering_platforms=(platform,)).as_text()
