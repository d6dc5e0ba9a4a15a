"""Several leaves of a tree in one step: equal to a plain-Python search with virtual losses, to the last bit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.evaluation import solve
from azjax.search import advance, alphazero_policy, evaluators, uct_policy
from azjax.search.rules.ucb1 import DECIDED
from benchmarks.rules.table_game import TableGame, node_of, plain_search
from benchmarks.searches import puct

KEY = jax.random.key(0)
DENSE_SLOTS = TableGame(seed=1, width=128, depth=8, actions=11, slots=6)
BLOCKED_SLOTS = dataclasses.replace(TableGame(seed=4, width=64, depth=8, actions=100, slots=40), real=True)
TICTACTOE = azjax.make("tictactoe")
BRANDUB = azjax.make("brandub")


def search(game, states, num_simulations, leaves_per_step, evaluator=None, params=None, **options):
    return alphazero_policy(
        params,
        KEY,
        states,
        game=game,
        evaluator=evaluator or evaluators.uniform(game),
        num_simulations=num_simulations,
        leaves_per_step=leaves_per_step,
        **options,
    )


def search_table_game(game, nodes, num_simulations, leaves_per_step, **options):
    params = game.tables.prior_logits, game.tables.values
    evaluator = evaluators.table(node_of)
    return search(game, game.state_at(nodes), num_simulations, leaves_per_step, evaluator, params, **options)


@pytest.mark.slow_except("game1-96-32-8")
@pytest.mark.parametrize(
    ("game", "num_simulations", "num_roots", "leaves_per_step"),
    [
        (DENSE_SLOTS, 96, 256, 4),
        (BLOCKED_SLOTS, 96, 32, 8),
        pytest.param(DENSE_SLOTS, 96, 256, 2, marks=pytest.mark.slow),
        pytest.param(DENSE_SLOTS, 96, 256, 32, marks=pytest.mark.slow),
        pytest.param(BLOCKED_SLOTS, 400, 32, 2, marks=pytest.mark.slow),
        pytest.param(BLOCKED_SLOTS, 400, 32, 40, marks=pytest.mark.slow),
    ],
)
def test_trees_equal_those_of_a_plain_python_search(game, num_simulations, num_roots, leaves_per_step):
    nodes = np.arange(num_roots)
    result = search_table_game(game, nodes, num_simulations, leaves_per_step)
    puct.assert_equal(result, plain_search(game, nodes, num_simulations, leaves_per_step=leaves_per_step))


def starts(game, batch=2):
    return jax.vmap(game.init)(jax.random.split(KEY, batch))


@pytest.mark.parametrize("game", [TICTACTOE, pytest.param(BRANDUB, marks=pytest.mark.slow)], ids=str)
def test_the_visits_sum_to_the_simulations_and_the_leaves_of_a_step_differ(game):
    result = search(game, starts(game), 64, 8)
    np.testing.assert_array_equal(result.visits.sum(axis=1), 64)
    # The first eight leaves of an even start are eight moves.
    first = search(game, starts(game), 8, 8)
    np.testing.assert_array_equal((first.visits == 1).sum(axis=1), 8)


def test_where_one_action_is_legal_all_leaves_of_a_step_share_the_value_of_its_position():
    states = jax.tree.map(lambda leaf: leaf[None], TICTACTOE.from_text("XOXXOOOX_"))
    result = search(TICTACTOE, states, 4, 4)
    np.testing.assert_array_equal(result.visits[0], np.eye(9)[8] * 4)


def test_what_is_proven_is_true_and_late_positions_are_proven():
    solution = solve(TICTACTOE)
    stones = np.asarray(jax.jit(jax.vmap(TICTACTOE.observe))(solution.states)).reshape(len(solution.values), -1).sum(1)
    chosen = np.flatnonzero(~solution.terminated & (stones >= 3) & (stones <= 6))[::40]
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf[chosen]), solution.states)
    values = solution.values[chosen]
    bounds = np.asarray(search(TICTACTOE, states, 800, 8, solver=True).bounds)
    assert (bounds[:, 0] <= values).all()
    assert (values <= bounds[:, 1]).all()
    late = stones[chosen] >= 5
    assert late.sum() > 20
    np.testing.assert_array_equal(bounds[late], np.stack([values, values], axis=1)[late])


@pytest.mark.slow
@pytest.mark.parametrize("game", [DENSE_SLOTS, BLOCKED_SLOTS], ids=["dense", "blocked"])
def test_a_full_tree_is_searched_without_new_nodes(game):
    nodes = np.arange(16)
    result = search_table_game(game, nodes, 64, 8, max_nodes=20)
    assert int(result.tree.num_made) == 17
    running = result.visits.sum(axis=1) > 0
    np.testing.assert_array_equal(result.tree.visits[0][running], 65)
    assert ((result.tree.visits > 0).sum(axis=0) <= 17).all()


@pytest.mark.slow
def test_a_tree_is_continued_and_kept_below_a_move():
    first = search(TICTACTOE, starts(TICTACTOE), 64, 8, max_nodes=200)
    both = search(TICTACTOE, starts(TICTACTOE), 64, 8, tree=first.tree)
    np.testing.assert_array_equal(both.visits, search(TICTACTOE, starts(TICTACTOE), 128, 8, max_nodes=200).visits)
    following = jax.vmap(TICTACTOE.step)(starts(TICTACTOE), both.action)
    kept = advance(both.tree, both.action)
    of_move = jnp.take_along_axis(both.visits, both.action[:, None], axis=1)[:, 0]
    np.testing.assert_array_equal(kept.visits[0], of_move)
    after = search(TICTACTOE, following, 64, 8, tree=kept)
    np.testing.assert_array_equal(after.tree.visits[0], of_move + 64)


@pytest.mark.slow
def test_uct_counts_each_decided_visit_once():
    result = uct_policy(None, KEY, starts(TICTACTOE), game=TICTACTOE, num_simulations=64, leaves_per_step=8)
    tree = result.tree
    made = tree.visits > 0
    decided = tree.nodes.sums[DECIDED]
    assert (decided[made] <= tree.visits[made]).all()
    assert float(decided[0].min()) > 32
    np.testing.assert_array_equal(result.visits.sum(axis=1), 64)


@pytest.mark.parametrize("leaves_per_step", [0, 3])
def test_leaves_that_do_not_add_up_to_the_simulations_are_refused(leaves_per_step):
    message = f"leaves_per_step must divide num_simulations = 64, got {leaves_per_step}"
    with pytest.raises(ValueError, match=message):
        search(TICTACTOE, starts(TICTACTOE), 64, leaves_per_step)


def test_a_tree_of_a_search_with_other_steps_is_refused():
    tree = search(TICTACTOE, starts(TICTACTOE), 64, 8).tree
    with pytest.raises(ValueError, match="with the same options"):
        search(TICTACTOE, starts(TICTACTOE), 64, 4, tree=tree)
