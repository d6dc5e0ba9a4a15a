"""`uct_policy` against a plain-Python UCT, to the last win, and against facts known by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.search import evaluators, uct_policy
from azjax.search.rules.ucb1 import DECIDED
from azjax.search.tree import ROOT
from benchmarks.rules.one_state import HashedPosition, OneStateRules, batch_of
from benchmarks.searches import puct, uct

NUM_ROWS = 97  # of the table that holds the results of rollouts
TICTACTOE = azjax.make("tictactoe")


def results_of_rollouts(game):
    """A table of wins, draws and losses; its priors, which a search without priors ignores, are random."""
    generator = np.random.default_rng(1)
    logits = generator.normal(0, 3, (NUM_ROWS, game.num_actions)).astype(np.float32)
    return logits, generator.integers(-1, 2, NUM_ROWS).astype(np.float32)


def assert_equal_trees(tree, expected):
    """Visits and wins of every node; `expected` holds one `uct.Result` a row."""
    for row, result in enumerate(expected):
        visits, decided, returns = (np.zeros(tree.num_nodes, int) for _ in range(3))
        for node in result.root.descendants():
            visits[node.number], decided[node.number], returns[node.number] = node.count, sum(node.wins), node.returns()
        np.testing.assert_array_equal(tree.visits[:, row], visits)
        np.testing.assert_array_equal(np.where(visits > 0, tree.nodes.sums[DECIDED][:, row], 0), decided)
        np.testing.assert_array_equal(np.where(visits > 0, tree.nodes.returns[:, row], 0), returns)


@pytest.mark.slow_except("connect_four-1.4142135623730951", "tictactoe-1.4142135623730951")
@pytest.mark.parametrize("exploration", [2**0.5, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "game", [TICTACTOE, azjax.make("connect_four"), azjax.make("santorini")], ids=lambda game: game.name
)
def test_trees_equal_those_of_a_plain_python_search(game, exploration):
    params, generator = results_of_rollouts(game), np.random.default_rng(2)
    rules = OneStateRules(game, params)
    positions = [rules.after_random_plies(generator, plies) for plies in (0, 0, 2, 3, 5, 20)]
    assert positions[-1].terminal or game.name == "connect_four"
    result = uct_policy(
        params,
        jax.random.key(0),
        batch_of(positions),
        game=game,
        evaluator=evaluators.table(HashedPosition(game, NUM_ROWS)),
        num_simulations=200,
        exploration=exploration,
    )
    expected = [
        uct.search(rules, lambda position: position.value, position, 200, game.num_actions, exploration)
        for position in positions
    ]
    result = jax.device_get(result)
    assert_equal_trees(result.tree, expected)
    puct.assert_equal(result, expected)


def search_by_rollouts(cells, num_simulations=100, key_seed=0, batch=8):
    """Of one tictactoe position, in every row, after these moves from the start."""
    state = TICTACTOE.init(jax.random.key(0))
    for cell in cells:
        state = TICTACTOE.step(state, jnp.int32(cell))
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), state)
    return jax.device_get(
        uct_policy(None, jax.random.key(key_seed), states, game=TICTACTOE, num_simulations=num_simulations)
    )


def test_a_win_in_one_is_played_and_every_visit_of_it_is_a_win():
    result = search_by_rollouts([0, 3, 1, 4])  # XX_OO____: X wins at 2
    assert (result.action == 2).all()
    assert (result.q_values[:, 2] == 1).all()


def test_a_threat_is_met():
    assert (search_by_rollouts([0, 4, 1]).action == 2).all()  # XX__O____: O must take 2


def test_every_action_is_tried_once_before_one_is_tried_again():
    assert (search_by_rollouts([], 7).visits == [1, 1, 1, 1, 1, 1, 1, 0, 0]).all()


def test_wins_draws_and_losses_of_the_root_add_up_to_its_visits():
    tree = search_by_rollouts([]).tree
    visits, decided, returns = tree.visits[ROOT], tree.nodes.sums[DECIDED][ROOT], tree.nodes.returns[ROOT]
    wins, losses = (decided + returns) / 2, (decided - returns) / 2
    assert (visits == 100).all()
    for count in (wins, losses):
        assert (count == np.round(count)).all()
        assert (count > 0).all()
    # With random moves X wins 58% of all games and O 29%.
    assert (wins > losses).all()
    assert (wins + losses <= visits).all()


def test_the_action_has_the_highest_mean_return_and_the_policy_is_the_share_of_visits():
    result = search_by_rollouts([4])
    tried = result.visits > 0
    np.testing.assert_array_equal(result.action, np.argmax(np.where(tried, result.q_values, -np.inf), axis=1))
    np.testing.assert_allclose(result.policy, result.visits / 100, atol=1e-6)


def test_equal_keys_search_equally_and_others_do_not():
    first, again, other = (search_by_rollouts([], key_seed=key_seed).visits for key_seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_rows_of_a_batch_roll_out_differently():
    visits = search_by_rollouts([]).visits
    assert len({tuple(row) for row in visits.tolist()}) > 1


@pytest.mark.parametrize("num_simulations", [0, -3])
def test_a_search_without_simulations_is_refused(num_simulations):
    with pytest.raises(ValueError, match=f"num_simulations.*{num_simulations}"):
        search_by_rollouts([], num_simulations)


def test_where_the_visited_action_is_proven_lost_another_legal_one_is_played():
    game = azjax.make("chomp", columns=2, rows=2)
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], game.from_text("__/## 1"))  # legal: the poison and 3
    result = uct_policy(None, jax.random.key(0), states, game=game, num_simulations=1, solver=True)
    assert result.visits[0].tolist() == [0, 0, 1, 0]
    assert result.policy[0].tolist() == [0, 0, 0, 1]
    assert int(result.action[0]) == 3
