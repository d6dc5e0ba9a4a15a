"""The rules of selection against their formulas, written again in NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import azjax
from azjax.core.errors import InputError
from azjax.search import AlphaZero, SearchHyper, evaluators
from azjax.search.rules import rule_of
from azjax.search.rules.regularized_policy import RegularizedPolicy
from azjax.search.rules.relative_entropy import RelativeEntropy
from azjax.search.selection import NodeStatistics
from benchmarks.rules.layered_game import LayeredGame

ACTIONS, TREES = 9, 8
ONE_PLY = LayeredGame(ACTIONS, ACTIONS, depth=1, width=64)
TWO_PLIES = LayeredGame(5, 5, depth=2, width=64)
LOGITS = np.random.default_rng(0).normal(0, 2, ACTIONS).astype(np.float32)
C_PUCT = 1.25


def searched(game, name, num_simulations, logits, value=0.0, batch=TREES):
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch))
    policy = AlphaZero(game, evaluators.table(lambda state: jnp.int32(0)), num_simulations, rule=rule_of(name))
    params = jnp.asarray(logits)[None], jnp.full(1, value, jnp.float32)
    result = policy(params, jax.random.key(1), states, hyper=SearchHyper(c_puct=C_PUCT))
    following = jax.vmap(jax.vmap(game.step, in_axes=(None, 0)), in_axes=(0, None))(
        states, jnp.arange(game.num_actions)
    )
    return result, np.asarray(following.rewards[..., 0])


def katago_deviation(values):
    """The standard deviation of a node's values, with two visits of deviation 0.4 beside them."""
    count, mean, square = len(values), np.mean(values), np.mean(np.square(values))
    if count <= 1:
        return 0.4
    return np.sqrt(((mean**2 + 0.4**2) * 2 + max(square, mean**2) * count) / (2 + count - 1) - mean**2)


@pytest.mark.slow
@pytest.mark.parametrize("num_simulations", [40, 200])
def test_c_puct_rises_and_falls_with_the_deviation_of_the_values(num_simulations):
    result, rewards = searched(ONE_PLY, "variance_scaled", num_simulations, LOGITS)
    prior = np.asarray(jax.nn.softmax(LOGITS))
    for tree in range(TREES):
        visits, returns, values = np.zeros(ACTIONS), np.zeros(ACTIONS), [0.0]
        for done in range(num_simulations):
            q = np.where(visits > 0, returns / np.maximum(visits, 1), 0)
            factor = 1 + 0.85 * (katago_deviation(values) / 0.4 - 1)
            arm = np.argmax(q + factor * C_PUCT * np.sqrt(max(done, 1)) * prior / (1 + visits))
            visits[arm] += 1
            returns[arm] += rewards[tree, arm]
            values.append(rewards[tree, arm])
        np.testing.assert_array_equal(result.visits[tree], visits)
    plain, _ = searched(ONE_PLY, "puct", num_simulations, LOGITS)
    if num_simulations > 100:
        assert (np.asarray(plain.visits) != np.asarray(result.visits)).any()


def regularized(prior, q, weight):
    """The policy l P / (alpha - Q) that sums to 1, by bisection."""
    total = lambda alpha: np.sum(weight * prior / (alpha - q)) - 1  # noqa: E731
    alpha = scipy.optimize.brentq(total, np.max(q + weight * prior) - 1e-12, np.max(q) + weight + 1e-9, xtol=1e-13)
    return weight * prior / (alpha - q)


@pytest.mark.slow
def test_the_target_of_the_regularized_policy_is_the_best_policy_with_its_regularizer():
    result, _ = searched(ONE_PLY, "regularized_policy", 100, LOGITS)
    prior = np.asarray(jax.nn.softmax(LOGITS), np.float64)
    weight = C_PUCT * np.sqrt(100) / (ACTIONS + 100)
    for tree in range(TREES):
        visits, q = (np.asarray(row[tree], np.float64) for row in (result.visits, result.q_values))
        mean = np.sum(visits * q) / np.sum(visits)
        completed = np.where(visits > 0, q, mean)
        policy = regularized(prior, completed, weight)
        np.testing.assert_allclose(result.policy[tree], policy, rtol=2e-3, atol=1e-5)

        def objective(y, completed=completed):
            return np.sum(completed * y) - weight * np.sum(prior * np.log(prior / y))

        others = np.random.default_rng(tree).dirichlet(100 * policy, 50)
        assert all(objective(policy) >= objective(other) for other in others)


def test_the_regularized_policy_samples_its_policy():
    rule = RegularizedPolicy(jnp.float32(C_PUCT), ACTIONS)
    prior, q = np.asarray(jax.nn.softmax(LOGITS)), np.linspace(-0.5, 0.5, ACTIONS).astype(np.float32)
    terms = rule.init(jnp.asarray(prior))._replace(q=jnp.asarray(q), visits=jnp.ones(ACTIONS))
    node = node_with(visits=1 + ACTIONS, value=0.0)
    node_terms = rule.node_terms(node, fold_over(terms))
    expected = regularized(prior, q, C_PUCT * np.sqrt(ACTIONS) / (2 * ACTIONS))
    frequencies = sampled(rule, node_terms, terms)
    np.testing.assert_allclose(frequencies, expected, atol=0.01)


def test_the_soft_rule_samples_its_policy_and_backs_up_its_value():
    rule = RelativeEntropy(temperature=0.2, exploration=0.5)
    prior, q = np.asarray(jax.nn.softmax(LOGITS)), np.linspace(-0.5, 0.5, ACTIONS).astype(np.float32)
    terms = rule.init(jnp.asarray(prior))._replace(q=jnp.asarray(q), visits=jnp.ones(ACTIONS))
    node = node_with(visits=1 + ACTIONS, evaluation=0.1)
    value = 0.2 * np.log(np.sum(prior * np.exp(q / 0.2)))
    np.testing.assert_allclose(rule.backward(jnp.zeros(1), node, fold_over(terms)), [value], rtol=1e-5)
    mix = 0.5 / np.log1p(1 + ACTIONS)
    expected = (1 - mix) * prior * np.exp((q - value) / 0.2) + mix * prior
    np.testing.assert_allclose(expected.sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(sampled(rule, rule.node_terms(node, fold_over(terms)), terms), expected, atol=0.01)


@pytest.mark.slow
def test_an_edge_has_the_soft_value_of_its_child():
    """Two plies: a child's value is t log sum P exp(Q / t) over its ends, its evaluation for those not yet seen."""
    value = 0.3
    result, _ = searched(TWO_PLIES, "relative_entropy", 12, LOGITS[:5], value)
    tree, prior = result.tree, np.asarray(jax.nn.softmax(LOGITS[:5]))
    nodes = jax.device_get(tree.nodes)
    slots = jnp.broadcast_to(jnp.arange(5, dtype=jnp.int32)[:, None], (5, TREES))
    edges = np.asarray(tree.edges.find(jnp.arange(TREES, dtype=jnp.int32), slots))
    checked = 0
    for row in range(TREES):
        for slot in np.flatnonzero(edges[:, row] >= 0):
            (child,) = np.flatnonzero(
                (nodes.visits[:, row] > 0)
                & (nodes.parent[:, row] == 0)
                & (nodes.slot[:, row] == slot)
                & (np.arange(tree.num_nodes) > 0)
            )
            ends = np.flatnonzero((nodes.visits[:, row] > 0) & (nodes.parent[:, row] == child))
            if not len(ends):
                continue
            q = np.full(5, value)
            q[nodes.slot[ends, row]] = nodes.returns[ends, row] / nodes.visits[ends, row]
            soft = 0.1 * np.log(np.sum(prior * np.exp(q / 0.1)))
            np.testing.assert_allclose(tree.edges.read_terms(jnp.asarray(edges[slot, row])).q, -soft, rtol=1e-4)
            checked += 1
    assert checked > TREES


def test_an_unknown_rule_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="unknown rule of selection 'ucb'; available: puct, regularized_policy, rel"):
        rule_of("ucb")


def node_with(visits, value=0.0, evaluation=0.0):
    number = lambda x: jnp.full(1, x, jnp.float32)  # noqa: E731
    return NodeStatistics(number(visits), number(value), number(evaluation), jnp.int32(1), number(visits - 1), {})


def fold_over(terms):
    """A fold over edges of one node, in two parts."""
    edges = jax.tree.map(lambda term: term[:, None], terms)

    def fold(function, start):
        for part in (slice(0, 4), slice(4, None)):
            start = function(start, jax.tree.map(lambda term, part=part: term[part], edges))
        return start

    return fold


def sampled(rule, node_terms, terms, draws=40_000):
    """How often each edge has the highest score."""

    def best(key):
        keys = jax.random.split(key, len(terms.q))
        shared = jax.tree.map(lambda term: jnp.broadcast_to(term, terms.q.shape), node_terms)
        return jnp.argmax(rule.score(keys, jnp.int32(1), shared, terms))

    chosen = jax.vmap(best)(jax.random.split(jax.random.key(5), draws))
    return np.bincount(np.asarray(chosen), minlength=len(terms.q)) / draws


def test_an_action_that_is_proven_lost_is_no_target():
    game = azjax.make("chomp", columns=3, rows=2)
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], game.from_text("#__/### 1"))  # 3 is the poison
    policy = AlphaZero(game, evaluators.uniform(game), 40, solver=True, rule=rule_of("regularized_policy"))
    result = policy(None, jax.random.key(0), states)
    assert np.flatnonzero(game.legal_action_mask(jax.tree.map(lambda leaf: leaf[0], states))).tolist() == [0, 3, 4, 5]
    assert result.q_values[0, 3] == -1
    assert result.policy[0, 3] == 0
    np.testing.assert_allclose(result.policy.sum(), 1, rtol=1e-6)


@pytest.mark.slow
def test_leaves_evaluated_at_once_leave_every_edge_the_soft_value_of_its_child():
    game, temperature = azjax.make("tictactoe"), 0.1
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), TREES))
    policy = AlphaZero(game, evaluators.random(game), 64, leaves_per_step=8, rule=rule_of("relative_entropy"))
    tree = policy(None, jax.random.key(1), states).tree
    nodes, untried, terms = jax.device_get((tree.nodes, tree.grids().prior, tree.grids().edges.terms))
    q, prior = (terms[..., tree.edges.terms_type._fields.index(name)] for name in ("q", "prior"))
    checked = 0
    for row, node in zip(*np.nonzero((nodes.visits > 1) & (nodes.discount != 0)), strict=True):
        if row == 0:
            continue
        tried = q[row, node] > -np.inf
        weight = np.sum(prior[row, node][tried] * np.exp(q[row, node][tried] / temperature))
        weight += np.sum(np.maximum(untried[row, node], 0)) * np.exp(nodes.evaluation[row, node] / temperature)
        edge = q[nodes.parent[row, node], node, nodes.slot[row, node]]
        np.testing.assert_allclose(edge, nodes.reward[row, node] - temperature * np.log(weight), atol=1e-4)
        checked += 1
    assert checked > 20 * TREES


def test_a_proven_loss_counts_as_minus_one_in_the_soft_value():
    """X threatens cell 2, and the evaluator thinks little of blocking it: nearly all other moves are proven lost."""
    game = azjax.make("tictactoe")
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], game.from_text("XX_O_____"))

    def evaluator(params, key, states):
        logits = jnp.zeros((len(states.terminated), 9)).at[:, 2].set(-12.0)
        return logits, jnp.where(states.current_player == 0, 0.5, -0.5)

    policy = AlphaZero(game, evaluator, 400, solver=True, rule=lambda hyper, game: RelativeEntropy())
    nodes = policy(None, jax.random.key(0), state).tree.nodes
    assert np.abs(np.asarray(nodes.q)[np.asarray(nodes.visits) > 0]).max() <= 1
