import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.search import alphazero_policy, evaluators
from azjax.search.rules.forced_playouts import ForcedPuct, ForcedTerms
from azjax.search.rules.puct import Puct
from azjax.search.selection import NodeStatistics
from benchmarks.rules.layered_game import LayeredGame

ACTIONS, TREES = 9, 8
GAME = LayeredGame(ACTIONS, ACTIONS, depth=1, width=64)
C_PUCT, FORCED = np.float32(1.25), np.float32(2.0)


def _search(num_simulations, logits, **options):
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), TREES))
    evaluator = evaluators.table(lambda state: jnp.int32(0))
    params = jnp.asarray(logits)[None], jnp.zeros(1)
    result = alphazero_policy(
        params,
        jax.random.key(1),
        states,
        game=GAME,
        evaluator=evaluator,
        num_simulations=num_simulations,
        c_puct=C_PUCT,
        **options,
    )
    actions = jnp.arange(ACTIONS)
    following = jax.vmap(jax.vmap(GAME.step, in_axes=(None, 0)), in_axes=(0, None))(states, actions)
    return result, np.asarray(following.rewards[..., 0])


def rule(forced_playouts):
    return ForcedPuct(Puct(jnp.float32(C_PUCT), jnp.float32(0)), jnp.float32(forced_playouts))


def _play_bandit(rewards, prior, num_simulations):
    """Visits of a search one ply deep, as section 3.2 tells it: a visited arm is forced up to sqrt(k P N) visits."""
    visits, returns = np.zeros(len(prior), int), np.zeros(len(prior), np.float32)
    for done in range(num_simulations):
        q = np.where(visits > 0, returns / np.maximum(visits, 1), 0).astype(np.float32)
        scores = q + C_PUCT * np.sqrt(np.float32(max(done, 1))) * (prior / (1 + visits).astype(np.float32))
        scores[(visits > 0) & (visits < np.sqrt(FORCED * prior * done))] = np.inf
        arm = np.argmax(scores)
        visits[arm] += 1
        returns[arm] += rewards[arm]
    return visits


@pytest.mark.slow
@pytest.mark.parametrize("num_simulations", [40, 200])
def test_a_search_of_one_ply_equals_a_plain_python_search(num_simulations):
    logits = np.random.default_rng(0).normal(0, 2, ACTIONS).astype(np.float32)
    result, rewards = _search(num_simulations, logits, forced_playouts=FORCED)
    prior = np.asarray(jax.nn.softmax(logits))
    plain, _ = _search(num_simulations, logits)
    for tree in range(TREES):
        np.testing.assert_array_equal(result.visits[tree], _play_bandit(rewards[tree], prior, num_simulations))
    assert (np.asarray(result.visits) != np.asarray(plain.visits)).any()


def test_the_policy_leaves_out_forced_visits():
    """By hand: c sqrt(99) = 12.44. The best slot's score is 0.5 + 12.44 * 0.4 / 61 = 0.582.

    The second has 30 visits, of which sqrt(2 * 0.3 * 99) = 7.7 could go, but 12.44 * 0.3 / (0.582 - 0.4) = 20.5 stay
    below the best's score at 21 visits already: 30 - 7 = 23 are left. The third had been better with less than
    12.44 * 0.29 / (0.582 - 0.2) = 9.4: of 8 all stay. The fourth has one visit, which is dropped.
    """
    visits = jnp.array([[60, 30, 8, 1]])
    q = jnp.array([[0.5, 0.4, 0.2, -1.0]])
    prior = jnp.array([[0.4, 0.3, 0.29, 0.01]])
    kept = rule(FORCED).target(prior, visits, q)
    np.testing.assert_array_equal(kept, [[60, 23, 8, 0]])


def test_without_forcing_nothing_is_taken_out():
    visits = jnp.array([[60, 30, 8, 1]])
    q = jnp.array([[0.5, 0.4, 0.2, -1.0]])
    prior = jnp.array([[0.4, 0.3, 0.29, 0.01]])
    np.testing.assert_array_equal(rule(0.0).target(prior, visits, q), visits)


@pytest.mark.parametrize(("depth", "root_visits"), [(0, 15), (1, 0)], ids=["root", "below"])
def test_visits_are_forced_at_the_root_alone(depth, root_visits):
    """Of 15 visits, an edge with the prior 0.3 has sqrt(2 * 0.3 * 15) = 3 in any case: 2 are too few at the root."""
    visits, zero = jnp.full(1, 16.0), jnp.zeros(1)
    node = NodeStatistics(visits, zero, zero, jnp.int32(depth), visits - 1, {})
    exploration, forcing_visits = rule(FORCED).node_terms(node, lambda function, start: start)
    np.testing.assert_allclose(exploration, [1.25 * np.sqrt(15)], rtol=1e-6)
    np.testing.assert_array_equal(forcing_visits, [root_visits])
    terms = ForcedTerms(q=zero, weight=jnp.full(1, 0.3 / 3), enough=jnp.full(1, 2**2 / (2 * 0.3)))
    score = rule(FORCED).score(None, jnp.int32(depth), (exploration, forcing_visits), terms)
    assert np.isinf(score).tolist() == [depth == 0]


def test_the_target_sums_to_one_and_is_no_less_sharp_than_the_visits():
    logits = np.zeros(ACTIONS, np.float32)
    result, _ = _search(100, logits, forced_playouts=FORCED, dirichlet_fraction=0.25)
    shares = np.asarray(result.visits) / 100
    policy = np.asarray(result.policy)
    np.testing.assert_allclose(policy.sum(axis=1), 1, rtol=1e-6)
    assert (policy.max(axis=1) >= shares.max(axis=1) - 1e-6).all()
    assert (policy.max(axis=1) > shares.max(axis=1)).any()


def test_it_lowers_for_accelerators():
    states = jax.eval_shape(jax.vmap(GAME.init), jax.random.split(jax.random.key(0), 2))
    search = jax.jit(
        lambda key, states: alphazero_policy(
            None,
            key,
            states,
            game=GAME,
            evaluator=evaluators.uniform(GAME),
            num_simulations=4,
            forced_playouts=2.0,
            solver=True,
        )
    )
    assert search.trace(jax.random.key(0), states).lower(lowering_platforms=("cuda", "tpu")).as_text()


def test_a_proven_loss_is_not_forced():
    game = azjax.make("chomp", columns=4, rows=3)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 1))
    result = alphazero_policy(
        None,
        jax.random.key(0),
        states,
        game=game,
        evaluator=evaluators.uniform(game),
        num_simulations=64,
        solver=True,
        forced_playouts=FORCED,
    )
    assert result.visits[0, 8] == 1  # the poison
