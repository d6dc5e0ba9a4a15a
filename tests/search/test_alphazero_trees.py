"""Trees of `alphazero_policy` equal those of a plain-Python search, to the last bit."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from searches import (
    CONNECT2,
    HASH_EVALUATOR,
    TICTACTOE,
    HashedRow,
    assert_equal_rows,
    hashed_params,
    random_positions,
    search,
    uniform_params,
)

from azjax.games.mnk import Mnk
from azjax.search import evaluators
from benchmarks.rules.mnk import MnkRules
from benchmarks.rules.table_game import TableGame, node_of, plain_search
from benchmarks.searches import puct

# Games of random tables.

SOME_SLOTS = TableGame(seed=1, width=128, depth=8, actions=11, slots=6)
ALL_SLOTS = TableGame(seed=2, width=128, depth=8, actions=7, slots=7)
# With so many slots edges are kept with their children alone, eight in a row.
SOME_OF_40 = TableGame(seed=3, width=64, depth=8, actions=40, slots=24)
SOME_OF_100 = TableGame(seed=4, width=64, depth=8, actions=100, slots=40)
ALL_OF_24 = TableGame(seed=5, width=64, depth=8, actions=24, slots=24)
TABLE = evaluators.table(node_of)


def real_numbers_of(game):
    return dataclasses.replace(game, real=True)


def search_table_game(game, nodes, num_simulations, *, params=None, c_puct=1.25):
    return search(
        params or (game.tables.prior_logits, game.tables.values),
        game.state_at(nodes),
        game=game,
        evaluator=TABLE,
        num_simulations=num_simulations,
        c_puct=c_puct,
    )


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"),
    [
        (SOME_SLOTS, 1, 1024),
        pytest.param(SOME_SLOTS, 2, 1024, marks=pytest.mark.slow),
        (SOME_SLOTS, 16, 1024),
        (SOME_SLOTS, 100, 512),
        pytest.param(ALL_SLOTS, 100, 256, marks=pytest.mark.slow),
    ],
    ids=lambda value: value.slots if isinstance(value, TableGame) else value,
)
def test_trees_of_random_games_equal_those_of_a_plain_python_search(game, num_simulations, num_roots):
    nodes = np.arange(num_roots)
    assert game.tables.terminal[nodes].any()
    result = search_table_game(game, nodes, num_simulations)
    puct.assert_equal(result, plain_search(game, nodes, num_simulations))


@pytest.mark.parametrize("c_puct", [0.25, 4.0])
def test_trees_equal_those_of_a_plain_python_search_with_other_exploration(c_puct):
    nodes = np.arange(1024)
    result = search_table_game(SOME_SLOTS, nodes, 16, c_puct=c_puct)
    puct.assert_equal(result, plain_search(SOME_SLOTS, nodes, 16, c_puct))


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots", "c_puct"),
    [
        pytest.param(SOME_OF_40, 150, 64, 1.25, marks=pytest.mark.slow),
        pytest.param(real_numbers_of(ALL_OF_24), 150, 64, 1.25, marks=pytest.mark.slow),
        pytest.param(SOME_OF_100, 400, 32, 4.0, marks=pytest.mark.slow),
        pytest.param(real_numbers_of(SOME_OF_100), 400, 32, 4.0, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_trees_of_many_slots_equal_those_of_a_plain_python_search(game, num_simulations, num_roots, c_puct):
    nodes = np.arange(num_roots)
    expected = plain_search(game, nodes, num_simulations, c_puct)
    below_the_roots = [
        len(node.children) for row in expected for node in row.root.descendants() if node is not row.root
    ]
    assert max(below_the_roots) > 8
    assert num_simulations < 400 or {8, 9, 16, 17} <= set(below_the_roots)
    puct.assert_equal(search_table_game(game, nodes, num_simulations, c_puct=c_puct), expected)


@pytest.mark.slow
def test_trees_of_real_numbers_equal_those_of_a_plain_python_search():
    game, nodes = real_numbers_of(SOME_SLOTS), np.arange(256)
    puct.assert_equal(search_table_game(game, nodes, 64), plain_search(game, nodes, 64))


def test_evaluations_of_ended_games_and_illegal_actions_are_ignored():
    game, nodes = SOME_SLOTS, np.arange(1024)
    tables = game.tables
    logits = np.where(tables.legal, tables.prior_logits, np.nan)
    values = np.where(tables.terminal, np.nan, tables.values)
    result = search_table_game(game, nodes, 16, params=(logits, values))
    assert_equal_rows(result, search_table_game(game, nodes, 16))


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"),
    [(SOME_SLOTS, 16, 1024), pytest.param(SOME_OF_100, 400, 32, marks=pytest.mark.slow)],
    ids=str,
)
def test_rows_of_a_batch_do_not_influence_one_another(game, num_simulations, num_roots):
    nodes = np.arange(num_roots)
    order = np.random.default_rng(0).permutation(nodes)
    order[1::2] = order[::2]  # every row twice
    result, shuffled = (search_table_game(game, rows, num_simulations, c_puct=4.0) for rows in (nodes, order))
    assert_equal_rows(jax.tree.map(lambda leaf: leaf[order], result), shuffled)
    alone = search_table_game(game, nodes[:1], num_simulations, c_puct=4.0)
    assert_equal_rows(jax.tree.map(lambda leaf: leaf[:1], result), alone)


@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots"), [(SOME_SLOTS, 16, 1024), (ALL_SLOTS, 100, 256)], ids=str
)
def test_policies_sum_to_one_over_the_legal_actions(game, num_simulations, num_roots):
    nodes = np.arange(num_roots)
    result = search_table_game(game, nodes, num_simulations)
    legal, running = game.tables.legal[nodes], ~game.tables.terminal[nodes]
    assert (result.visits.sum(axis=1) == np.where(running, num_simulations, 0)).all()
    assert not result.visits[~legal].any()
    assert not result.policy[~legal].any()
    np.testing.assert_allclose(result.policy.sum(axis=1), running.astype(np.float32), atol=1e-6)
    assert legal[np.arange(len(nodes)), result.action][running].all()
    assert result.action.dtype == result.visits.dtype == np.int32
    assert result.policy.dtype == result.value.dtype == result.q_values.dtype == np.float32


# m,n,k games.


masked_softmax = jax.jit(lambda logits, valid: jax.nn.softmax(jnp.where(valid, logits, -jnp.inf)))


def plain_search_of_mnk(game, params, positions, num_simulations):
    rules, row_of = MnkRules(game.columns, game.rows, game.in_a_row), HashedRow(game)

    @functools.cache
    def evaluate(position):
        row = row_of.of_position(position)
        return np.asarray(masked_softmax(params[0][row], np.array(position.board) == 0)), params[1][row]

    return [puct.search(rules, evaluate, position, num_simulations, game.num_actions) for position in positions]


@pytest.mark.parametrize("make_params", [hashed_params, uniform_params])
@pytest.mark.parametrize(
    ("game", "num_simulations"),
    [
        pytest.param(TICTACTOE, 1, marks=pytest.mark.slow),
        (TICTACTOE, 16),
        pytest.param(TICTACTOE, 100, marks=pytest.mark.slow),
        (CONNECT2, 100),
        (Mnk(4, 4, 3), 100),
    ],
    ids=str,
)
def test_trees_of_mnk_games_equal_those_of_a_plain_python_search(game, num_simulations, make_params):
    positions, states = random_positions(game)
    assert any(position.terminal for position in positions)
    params, evaluator = make_params(game), evaluators.table(HashedRow(game))
    result = search(params, states, game=game, evaluator=evaluator, num_simulations=num_simulations)
    puct.assert_equal(result, plain_search_of_mnk(game, params, positions, num_simulations))


def test_the_uniform_evaluator_is_a_table_of_zeros():
    _, states = random_positions(TICTACTOE)
    uniform = search(None, states, game=TICTACTOE, evaluator=evaluators.uniform(TICTACTOE), num_simulations=100)
    zeros = search(uniform_params(TICTACTOE), states, game=TICTACTOE, evaluator=HASH_EVALUATOR, num_simulations=100)
    assert_equal_rows(uniform, zeros)


# The call.


@pytest.mark.parametrize("num_simulations", [0, -3])
def test_a_search_without_simulations_is_refused(num_simulations):
    with pytest.raises(ValueError, match=f"num_simulations.*{num_simulations}"):
        search_table_game(SOME_SLOTS, np.arange(4), num_simulations)


def test_calls_of_equal_shapes_are_traced_once():
    game, traced = ALL_SLOTS, []

    def evaluator(params, key, states):
        assert states.terminated.shape == (4,)
        traced.append(1)
        return TABLE(params, key, states)

    tables = game.tables
    for call, (c_puct, fraction, temperature) in enumerate([(1.25, 0.0, 0.0), (2.0, 0.25, 1.0), (1.0, 1.0, np.inf)]):
        search(
            (tables.prior_logits, tables.values * (call + 1) / 8),
            game.state_at(np.arange(4) + call),
            game=game,
            evaluator=evaluator,
            num_simulations=3,
            key_seed=call,
            c_puct=c_puct,
            dirichlet_fraction=fraction,
            temperature=temperature,
        )
        if call == 0:
            traces = len(traced)
    assert len(traced) == traces > 0


def test_one_state_in_place_of_a_batch_is_refused():
    state = TICTACTOE.init(jax.random.key(0))
    with pytest.raises(ValueError, match=r"a search needs a batch of states.* `terminated` has the shape \[\]"):
        search(None, state, game=TICTACTOE, evaluator=evaluators.uniform(TICTACTOE), num_simulations=2)
