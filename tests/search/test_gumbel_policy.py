"""`gumbel_policy` against a plain-Python search, against mctx, and against facts known by hand."""

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from results import without_tree

import azjax.games
from azjax.search import evaluators, gumbel_policy
from azjax.search.draws import gumbel_noise, keys_of_states
from azjax.search.gumbel import considered_visits
from benchmarks.rules.table_game import TableGame, TableRules, node_of, slot_priors
from benchmarks.searches import gumbel

KEY = jax.random.key(0)
SOME_SLOTS = TableGame(seed=1, width=128, depth=8, actions=11, slots=6, real=True)
ALL_SLOTS = TableGame(seed=2, width=128, depth=8, actions=7, slots=7, real=True)
MANY_SLOTS = TableGame(seed=3, width=128, depth=8, actions=40, slots=24, real=True)  # edges in blocks
TABLE = evaluators.table(node_of)


def search_table_game(
    game,
    nodes,
    num_simulations,
    *,
    max_num_considered_actions=16,
    gumbel_scale=0.0,
    maxvisit_init=50.0,
    value_scale=0.1,
    rescale_values=True,
):
    """The result on the host, and no NaN anywhere in it. All options are passed, so that one compilation serves."""
    result = gumbel_policy(
        (game.tables.prior_logits, game.tables.values),
        KEY,
        game.state_at(nodes),
        game=game,
        evaluator=TABLE,
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        gumbel_scale=gumbel_scale,
        maxvisit_init=maxvisit_init,
        value_scale=value_scale,
        rescale_values=rescale_values,
    )
    result = without_tree(result)
    for leaf in jax.tree.leaves(result):
        assert not np.isnan(leaf).any()
    return result


def plain_search(game, nodes, num_simulations, gumbel_scale=0.0, **options):
    rules, priors, values = TableRules(game), slot_priors(game), game.tables.values
    noise_keys = keys_of_states(KEY, len(nodes), 3)[1]
    noise = np.asarray(gumbel_noise(noise_keys, game.max_legal_actions, gumbel_scale))
    return [
        gumbel.search(
            rules,
            lambda position: (priors[position.node], values[position.node]),
            rules.position_at(node),
            num_simulations,
            game.num_actions,
            row_noise,
            gumbel.Options(**options),
        )
        for node, row_noise in zip(nodes, noise, strict=True)
    ]


def assert_equal_to_oracle(result, expected):
    """Visits and actions are equal, numbers up to rounding."""
    np.testing.assert_array_equal(result.visits, np.stack([row.visits for row in expected]))
    np.testing.assert_array_equal(result.action, np.stack([row.action for row in expected]))
    np.testing.assert_allclose(result.q_values, np.stack([row.q_values for row in expected]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.value, np.stack([row.value for row in expected]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.policy, np.stack([row.policy for row in expected]), rtol=0, atol=1e-4)


@pytest.mark.slow_except("6-32-256-0.0", "6-32-256-1.0")
@pytest.mark.parametrize("gumbel_scale", [0.0, 1.0])
@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"),
    [(SOME_SLOTS, 32, 256), pytest.param(ALL_SLOTS, 32, 256, marks=pytest.mark.slow), (MANY_SLOTS, 50, 128)],
    ids=lambda value: value.slots if isinstance(value, TableGame) else value,
)
def test_trees_of_random_games_equal_those_of_a_plain_python_search(game, num_simulations, num_roots, gumbel_scale):
    nodes = np.arange(num_roots)
    assert game.tables.terminal[nodes].any()
    result = search_table_game(game, nodes, num_simulations, gumbel_scale=gumbel_scale)
    assert_equal_to_oracle(result, plain_search(game, nodes, num_simulations, gumbel_scale))


@pytest.mark.slow
def test_nodes_of_many_children_equal_those_of_a_plain_python_search():
    # All simulations go through one action, and values count for little: the nodes below get more than 8 children.
    nodes, options = np.arange(32), {"max_num_considered_actions": 1, "value_scale": 0.02}
    expected = plain_search(MANY_SLOTS, nodes, 100, **options)
    inner = [node for row in expected for child in row.root.children.values() for node in child.descendants()]
    assert any(len(node.children) > 8 for node in inner)
    result = search_table_game(MANY_SLOTS, nodes, 100, **options)
    assert_equal_to_oracle(result, expected)
    assert (result.visits.max(axis=1) == np.where(MANY_SLOTS.tables.terminal[nodes], 0, 100)).all()


@pytest.mark.parametrize(
    "options",
    [{"rescale_values": False, "value_scale": 1.0}, {"maxvisit_init": 5.0}],
    ids=lambda options: ",".join(options),
)
def test_trees_equal_those_of_a_plain_python_search_with_other_options(options):
    nodes = np.arange(256)
    result = search_table_game(SOME_SLOTS, nodes, 32, **options)
    assert_equal_to_oracle(result, plain_search(SOME_SLOTS, nodes, 32, **options))


def mctx_search(game, nodes, num_simulations):
    """`mctx.gumbel_muzero_policy` without noise on the same tables; to it an ended game goes on, worth nothing."""
    tables = jax.tree.map(jnp.asarray, game.tables)

    def evaluate(states):
        legal = jax.vmap(game.legal_action_mask)(states)
        logits = jnp.where(legal, tables.prior_logits[states.node], jnp.finfo(jnp.float32).min)
        return logits, jnp.where(states.terminated, 0.0, tables.values[states.node])

    def recurrent_fn(params, key, action, states):
        del params, key
        following = jax.vmap(game.step)(states, action)
        logits, value = evaluate(following)
        reward = jnp.take_along_axis(following.rewards, states.current_player[:, None], axis=1)[:, 0]
        discount = jnp.where(following.current_player == states.current_player, 1.0, -1.0)
        discount = jnp.where(following.terminated, 0.0, discount)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), following

    @jax.jit
    def run(states):
        logits, value = evaluate(states)
        return mctx.gumbel_muzero_policy(
            params=None,
            rng_key=KEY,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            recurrent_fn=recurrent_fn,
            num_simulations=num_simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(states),
            max_num_considered_actions=16,
            gumbel_scale=0.0,
        )

    output = run(game.state_at(nodes))
    tree = output.search_tree
    summary, raw_value, prior_logits = tree.summary(), tree.raw_values[:, 0], tree.children_prior_logits[:, 0]
    return jax.device_get((output.action, output.action_weights, summary, raw_value, jax.nn.softmax(prior_logits)))


@pytest.mark.slow_except("6-32-256")
@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"),
    [(SOME_SLOTS, 32, 256), (MANY_SLOTS, 50, 128)],
    ids=lambda value: value.slots if isinstance(value, TableGame) else value,
)
def test_visits_action_and_policy_equal_those_of_mctx(game, num_simulations, num_roots):
    nodes = np.flatnonzero(~game.tables.terminal)[:num_roots]
    result = search_table_game(game, nodes, num_simulations)
    action, policy, summary, raw_value, prior = mctx_search(game, nodes, num_simulations)
    np.testing.assert_array_equal(result.visits, summary.visit_counts)
    np.testing.assert_array_equal(result.action, action)
    np.testing.assert_allclose(result.policy, policy, rtol=0, atol=1e-4)
    np.testing.assert_allclose(result.q_values, summary.qvalues * (summary.visit_counts > 0), rtol=0, atol=1e-5)
    # The mixed value of the paper's appendix D.
    tried, q = summary.visit_counts > 0, summary.qvalues
    prior_q = np.sum(prior * q * tried, axis=1) / np.sum(prior * tried, axis=1)
    mixed_value = (raw_value + num_simulations * prior_q) / (1 + num_simulations)
    value = np.sum(policy * np.where(tried, q, mixed_value[:, None]), axis=1)
    np.testing.assert_allclose(result.value, value, rtol=0, atol=1e-4)


@pytest.mark.parametrize("max_num_considered_actions", range(8))
def test_the_schedule_of_sequential_halving_is_that_of_mctx(max_num_considered_actions):
    from mctx._src.seq_halving import get_sequence_of_considered_visits

    for num_simulations in (1, 2, 7, 16, 50, 200):
        expected = get_sequence_of_considered_visits(max_num_considered_actions, num_simulations)
        assert tuple(considered_visits(max_num_considered_actions, num_simulations)) == expected


@pytest.mark.slow_except("6")
@pytest.mark.parametrize("game", [SOME_SLOTS, MANY_SLOTS], ids=lambda game: game.slots)
def test_policies_sum_to_one_over_the_legal_actions_and_ended_games_have_none(game):
    nodes = np.arange(256 if game is SOME_SLOTS else 128)
    num_simulations = 32 if game is SOME_SLOTS else 50
    result = search_table_game(game, nodes, num_simulations, gumbel_scale=1.0)
    legal, running = game.tables.legal[nodes], ~game.tables.terminal[nodes]
    assert (result.visits.sum(axis=1) == np.where(running, num_simulations, 0)).all()
    assert not result.visits[~legal].any()
    assert not result.policy[~legal].any()
    np.testing.assert_allclose(result.policy.sum(axis=1), running.astype(np.float32), atol=1e-6)
    assert (result.policy >= 0).all()
    assert legal[np.arange(len(nodes)), result.action][running].all()
    assert not result.value[~running].any()
    assert not result.q_values[~running].any()
    assert result.action.dtype == result.visits.dtype == np.int32
    assert result.policy.dtype == result.value.dtype == result.q_values.dtype == np.float32


# Facts known by hand.

TICTACTOE = azjax.games.make("tictactoe")


def search_tictactoe(text, num_simulations, **options):
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], TICTACTOE.from_text(text))
    result = gumbel_policy(
        None,
        KEY,
        states,
        game=TICTACTOE,
        evaluator=evaluators.uniform(TICTACTOE),
        num_simulations=num_simulations,
        gumbel_scale=0.0,
        **options,
    )
    return without_tree(result)


def test_two_simulations_try_two_considered_actions_once_and_the_one_that_wins_is_played():
    # X to move wins at cell 5; of cells that are alike the lowest are considered, 2 and 5.
    result = search_tictactoe("OO_XX____", 2, max_num_considered_actions=2)
    assert result.visits[0].tolist() == [0, 0, 1, 0, 0, 1, 0, 0, 0]
    assert result.q_values[0].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert result.action[0] == 5
    # Q of cells 6, 7 and 8 is the mixed value, (0 + 2 * 1/2) / 3; Q is scaled by (50 + 1) / 10.
    weights = np.exp(5.1 * np.array([-np.inf, -np.inf, 0, -np.inf, -np.inf, 1, 1 / 3, 1 / 3, 1 / 3]))
    np.testing.assert_allclose(result.policy[0], weights / weights.sum(), rtol=0, atol=1e-6)
    assert result.value[0] == pytest.approx((weights[5] + weights[6:].sum() / 3) / weights.sum())


def test_half_of_the_considered_actions_share_the_second_half_of_the_simulations():
    # 2 rounds of 4 actions and 4 rounds of 2.
    assert considered_visits(4, 16).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("option", ["num_simulations", "max_num_considered_actions"])
def test_a_search_that_may_try_nothing_is_refused(option):
    with pytest.raises(ValueError, match=f"{option} must be (a whole number of )?at least 1, got 0"):
        search_table_game(SOME_SLOTS, np.arange(4), **{"num_simulations": 4, option: 0})


def shares_of(visits):
    """How often the roots' actions were visited, in falling order."""
    return -np.sort(-np.asarray(visits), axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"max_nodes": 100}, {"max_nodes": 100, "leaves_per_step": 4}])
def test_a_continued_tree_and_several_leaves_keep_to_the_schedule_of_the_halving(options):
    """The schedule alone decides how often the slots are visited, the first most often."""
    game, nodes = SOME_SLOTS, np.arange(16)
    params, options = (game.tables.prior_logits, game.tables.values), {"num_simulations": 32, **options}
    once = gumbel_policy(params, KEY, game.state_at(nodes), game=game, evaluator=TABLE, num_simulations=32)
    policy = {"game": game, "evaluator": TABLE, **options}
    first = gumbel_policy(params, KEY, game.state_at(nodes), **policy)
    np.testing.assert_array_equal(shares_of(first.visits), shares_of(once.visits))
    second = gumbel_policy(params, jax.random.key(1), game.state_at(nodes), tree=first.tree, **policy)
    new = np.asarray(second.visits) - np.asarray(first.visits)
    np.testing.assert_array_equal(shares_of(new), shares_of(once.visits))
    rows = np.arange(len(nodes))
    np.testing.assert_array_equal(new[rows, second.action], new.max(axis=1))
    np.testing.assert_allclose(np.asarray(second.policy).sum(axis=1), np.asarray(first.visits).any(axis=1), rtol=1e-5)


def test_a_full_tree_goes_on_with_what_it_has():
    game = SOME_SLOTS
    result = gumbel_policy(
        (game.tables.prior_logits, game.tables.values),
        KEY,
        game.state_at(np.arange(16)),
        game=game,
        evaluator=TABLE,
        num_simulations=32,
        max_nodes=4,
    )
    assert (np.sum(np.asarray(result.tree.visits[:4]) > 0, axis=0) <= 4).all()
    running = np.asarray(result.visits).any(axis=1)
    np.testing.assert_array_equal(result.tree.visits[0], np.where(running, 33, 1))
    np.testing.assert_allclose(np.asarray(result.policy).sum(axis=1), running, rtol=1e-5)


def test_the_policy_is_the_move_that_is_not_proven_lost_however_low_its_logit():
    game = azjax.games.make("tictactoe")
    states = jax.tree.map(lambda leaf: leaf[None], game.from_text("XX__O____"))

    def evaluator(params, key, states):
        logits = jnp.zeros((len(states.terminated), 9)).at[:, 2].set(jnp.where(states.current_player == 1, -jnp.inf, 0))
        return logits, jnp.zeros(len(states.terminated))

    result = gumbel_policy(None, KEY, states, game=game, evaluator=evaluator, num_simulations=400, solver=True)
    assert result.action.tolist() == [2]
    np.testing.assert_array_equal(result.policy, np.eye(9)[[2]])
