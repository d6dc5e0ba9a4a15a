"""The random draws of a search: their distribution, and that they depend on the key of each state alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from results import without_tree

from azjax.games.registry import make
from azjax.search import alphazero_policy, evaluators, gumbel_policy
from azjax.search.draws import log_gamma_draws

GAME = make("tictactoe")
POLICIES = {
    "alphazero": (alphazero_policy, {"dirichlet_fraction": 0.5, "temperature": 1.0}),
    "gumbel": (gumbel_policy, {}),
}


def _search(name, key, count):
    policy, options = POLICIES[name]
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), count))
    evaluator = evaluators.uniform(GAME)
    result = policy(None, key, states, game=GAME, evaluator=evaluator, num_simulations=16, **options)
    return without_tree(result)


@pytest.mark.slow_except("alphazero")
@pytest.mark.parametrize("name", POLICIES)
def test_the_draws_of_a_state_do_not_depend_on_the_rest_of_the_batch(name):
    keys = jax.random.split(jax.random.key(1), 8)
    whole = _search(name, keys, 8)
    assert len(np.unique(whole.visits, axis=0)) > 1
    parts = [_search(name, keys[part], 2) for part in (slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8))]
    jax.tree.map(np.testing.assert_array_equal, whole, jax.tree.map(lambda *rows: np.concatenate(rows), *parts))


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_one_key_is_split_for_the_states(name):
    one = _search(name, jax.random.key(1), 8)
    jax.tree.map(np.testing.assert_array_equal, one, _search(name, jax.random.split(jax.random.key(1), 8), 8))
    jax.tree.map(np.testing.assert_array_equal, one, _search(name, jax.random.PRNGKey(1), 8))


@pytest.mark.slow
@pytest.mark.parametrize(("leaves_per_step", "forced_playouts"), [(1, None), (2, None), (1, 2.0)])
def test_states_may_have_options_of_their_own(leaves_per_step, forced_playouts):
    keys = jax.random.split(jax.random.key(1), 4)
    options = {
        "c_puct": np.float32([0.5, 1.0, 2.0, 8.0]),
        "dirichlet_fraction": np.float32([0.0, 0.25, 0.5, 1.0]),
        "dirichlet_alpha": np.float32([10.0, 0.1, 0.3, 1.0]),
        "temperature": np.float32([0.0, 1.0, 2.0, 0.5]),
    }
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 4))

    def found(rows, options):
        result = alphazero_policy(
            None,
            keys[rows],
            jax.tree.map(lambda leaf: leaf[rows], states),
            game=GAME,
            evaluator=evaluators.uniform(GAME),
            num_simulations=32,
            leaves_per_step=leaves_per_step,
            forced_playouts=forced_playouts,
            **options,
        )
        return without_tree(result)

    whole = found(slice(None), options)
    assert len(np.unique(whole.visits, axis=0)) == 4
    alone = [found(slice(row, row + 1), {name: values[row] for name, values in options.items()}) for row in range(4)]
    jax.tree.map(np.testing.assert_array_equal, whole, jax.tree.map(lambda *rows: np.concatenate(rows), *alone))


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.0, 5.0])
def test_the_draws_of_the_noise_are_gamma_variates(alpha):
    keys = jax.random.split(jax.random.key(int(100 * alpha)), 1000)
    draws = log_gamma_draws(keys, jnp.full((1000, 100), alpha, jnp.float32)).reshape(-1)
    assert np.isfinite(draws).all()
    # In logarithms too, since most of the draws at a small alpha underflow.
    assert scipy.stats.kstest(np.asarray(draws, float), scipy.stats.loggamma(alpha).cdf).pvalue > 0.01
    assert scipy.stats.kstest(np.exp(np.asarray(draws, float)), scipy.stats.gamma(alpha).cdf).pvalue > 0.01
