"""A tree that goes on below a move is the tree that a fresh search of as many visits makes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.core.errors import InputError
from azjax.search import AlphaZero, advance, alphazero_policy, evaluators
from azjax.search.reuse import compact
from azjax.search.tree import ROOT
from benchmarks.rules.table_game import TableGame, node_of

GAMES = [
    TableGame(seed=5, width=64, depth=7, actions=7, slots=7),
    TableGame(seed=6, width=64, depth=7, actions=40, slots=24),
]
ROOTS = np.arange(16)
MAX_NODES = 100


def search(game, states, num_simulations, **options):
    return alphazero_policy(
        (game.tables.prior_logits, game.tables.values),
        jax.random.key(0),
        states if dataclasses.is_dataclass(states) else game.state_at(states),
        game=game,
        evaluator=evaluators.table(node_of),
        num_simulations=num_simulations,
        **options,
    )


def nodes_of(tree, row):
    """What there is of every node of one tree, in the order in which they were made; parents by that order."""
    nodes, states = jax.device_get((tree.nodes, tree.states))
    made = np.flatnonzero(nodes.visits[:, row] > 0)
    number = {node: place for place, node in enumerate(made)}
    return [
        (
            states.node[node, row],
            *(column[node, row] for column in (nodes.visits, nodes.returns, nodes.reward, nodes.discount, nodes.prior)),
            number[nodes.parent[node, row]],
            nodes.slot[node, row],
        )
        for node in made
    ]


@pytest.fixture(
    scope="module",
    params=[GAMES[0], pytest.param(GAMES[1], marks=pytest.mark.slow)],
    ids=lambda game: f"{game.slots} slots",
)
def searched(request):
    """The game, a search, the trees below its actions, and the states there."""
    game = request.param
    result = search(game, ROOTS, 60, max_nodes=MAX_NODES)
    states = jax.vmap(game.step)(game.state_at(ROOTS), result.action)
    return game, result, advance(result.tree, result.action), states


@pytest.fixture(scope="module")
def grown(searched):
    """For each row a fresh search from where the tree goes on, after every simulation; one compilation does for all."""
    game, _, _, states = searched
    results = [search(game, states, 1, max_nodes=MAX_NODES)]
    while len(results) < 100:
        results.append(search(game, states, 1, tree=results[-1].tree))
    return results


def running_rows(searched, grown, more=0):
    """The rows whose games go on, and whose trees `grown` reaches, with the visits of their roots."""
    game, _, tree, states = searched
    visits = np.asarray(tree.visits[ROOT])
    running = ~game.tables.terminal[ROOTS] & ~np.asarray(states.terminated)
    rows = np.flatnonzero(running & (visits > 1) & (visits - 1 + more <= len(grown)))
    assert len(rows) >= 3
    return [(row, visits[row]) for row in rows]


def test_it_equals_a_fresh_search_of_as_many_visits(searched, grown):
    _, _, tree, _ = searched
    for row, visits in running_rows(searched, grown):
        assert nodes_of(tree, row) == nodes_of(grown[visits - 2].tree, row)


def test_searching_on_equals_one_longer_search(searched, grown):
    game, _, tree, states = searched
    more = search(game, states, 30, tree=tree)
    for row, visits in running_rows(searched, grown, 30):
        fresh = grown[visits - 2 + 30]
        np.testing.assert_array_equal(more.visits[row], fresh.visits[row])
        np.testing.assert_array_equal(more.q_values[row], fresh.q_values[row])
        assert more.action[row] == fresh.action[row]


def test_two_calls_equal_one_of_as_many_simulations(searched):
    game, _, _, _ = searched
    once = search(game, ROOTS, 90, max_nodes=MAX_NODES)
    begun = search(game, ROOTS, 60, max_nodes=MAX_NODES)
    twice = search(game, ROOTS, 30, tree=begun.tree)
    np.testing.assert_array_equal(once.visits, twice.visits)
    np.testing.assert_array_equal(once.value, twice.value)


def test_a_tree_of_another_position_begins_again(searched):
    game, _, tree, states = searched
    others = (states.node + 1) % game.num_nodes
    again = search(game, others, 30, tree=tree)
    fresh = search(game, others, 30, max_nodes=MAX_NODES)
    np.testing.assert_array_equal(again.visits, fresh.visits)
    np.testing.assert_array_equal(again.value, fresh.value)


def test_below_an_action_that_was_never_tried_the_tree_is_empty(searched):
    _, result, _, _ = searched
    untried = jnp.argmin(result.visits, axis=1).astype(jnp.int32)
    assert not np.take_along_axis(np.asarray(result.visits), np.asarray(untried)[:, None], axis=1)[0]
    assert not advance(result.tree, untried).visits[:, 0].any()


def test_a_full_tree_makes_no_more_nodes_and_counts_every_visit(searched):
    game, _, _, _ = searched
    result = search(game, ROOTS, 100, max_nodes=20)
    running = ~game.tables.terminal[ROOTS]
    assert ((result.tree.visits > 0).sum(axis=0) <= 20).all()
    assert (result.visits.sum(axis=1) == np.where(running, 100, 0)).all()
    assert (result.tree.visits[ROOT] == np.where(running, 101, 1)).all()
    assert np.isfinite(result.value).all()


def test_visits_go_on_below_a_full_tree(searched):
    """An edge without a child keeps its score, and would take all later visits."""
    game, _, _, _ = searched
    few, many = (search(game, ROOTS, count, max_nodes=20) for count in (40, 400))
    made = np.asarray(many.tree.visits[:20]) > 0
    np.testing.assert_array_equal(made, np.asarray(few.tree.visits[:20]) > 0)
    parents = np.asarray(many.tree.nodes.parent[:20])
    for row in np.flatnonzero(~game.tables.terminal[ROOTS]):
        leaves = [node for node in np.flatnonzero(made[:, row]) if node not in parents[made[:, row], row][1:]]
        # Each visit after the tree was full ended at a node without children, and those of a terminal one count too.
        new = (np.asarray(many.tree.visits) - np.asarray(few.tree.visits))[leaves, row].sum()
        assert new == 360


def test_trees_of_another_size_are_refused(searched):
    game, _, tree, states = searched
    with pytest.raises(ValueError, match=f"tree has {MAX_NODES} nodes"):
        search(game, states, 10, tree=tree, max_nodes=10)


def test_several_moves_are_followed_at_once(searched):
    game, result, tree, states = searched
    more = search(game, states, 20, tree=tree)
    longer = search(game, ROOTS, 90, max_nodes=MAX_NODES).tree
    step_by_step = advance(advance(longer, result.action), more.action)
    at_once = advance(longer, result.action, more.action)
    assert (np.asarray(at_once.visits[ROOT]) > 0).sum() >= 3
    for row in range(len(ROOTS)):
        assert nodes_of(at_once, row) == nodes_of(step_by_step, row)


def test_without_a_move_all_nodes_stay(searched):
    _, result, _, _ = searched
    same = advance(result.tree)
    for row in range(len(ROOTS)):
        assert nodes_of(same, row) == nodes_of(result.tree, row)


@pytest.mark.parametrize("action", [-1, 1000])
def test_below_an_action_that_does_not_exist_the_tree_is_empty(searched, action):
    _, result, _, _ = searched
    none = jnp.full(len(ROOTS), action, jnp.int32)
    assert not advance(result.tree, none).visits.any()
    assert not advance(result.tree, none, result.action).visits.any()


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("action", [[1], [1.5] * 2, [[0], [1]]], ids=str)
def test_actions_that_are_not_one_for_each_tree_are_refused(action):
    game = azjax.make("connect2")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    result = AlphaZero(game, evaluators.uniform(game), 4)(None, jax.random.key(0), states)
    with pytest.raises(InputError, match=r"action must be int \[2\], one for each game of the tree; got "):
        advance(result.tree, jnp.asarray(action))
    for tree in (result, None):
        with pytest.raises(InputError, match="tree must be the `tree` of a SearchResult, got a "):
            advance(tree, jnp.zeros(2, jnp.int32))


def test_noise_at_the_root_changes_its_priors_and_no_visits(searched):
    game, _, tree, states = searched
    plain = search(game, states, 30, tree=tree)
    noisy = search(game, states, 30, tree=tree, dirichlet_fraction=0.9)
    before = np.asarray(tree.visits)
    assert (np.asarray(noisy.tree.visits)[before > 0] >= before[before > 0]).all()
    below = (before > 0) & (np.asarray(tree.nodes.parent) == ROOT) & (np.arange(MAX_NODES + 1)[:, None] > ROOT)
    assert below.any()
    assert not np.allclose(plain.tree.nodes.prior[below], noisy.tree.nodes.prior[below])
    np.testing.assert_array_equal(plain.tree.nodes.prior[below], tree.nodes.prior[below])


@pytest.mark.slow
@pytest.mark.parametrize("solver", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_compact_trees_are_the_same_trees_and_continue_equally(searched, solver):
    game = searched[0]
    begun = search(game, ROOTS, 60, max_nodes=200, solver=solver)
    # Half of the trees begin again, with numbers that follow those of the others.
    roots = np.where(ROOTS % 2 == 0, ROOTS, ROOTS[::-1])
    mixed = search(game, roots, 40, tree=begun.tree, solver=solver).tree
    made = np.sum(np.asarray(mixed.visits) > 0, axis=0)
    assert int(mixed.num_made) == 101
    assert made[1::2].max() <= 41
    dense = compact(mixed)
    assert int(dense.num_made) == made.max()
    for row in range(len(roots)):
        assert nodes_of(dense, row) == nodes_of(mixed, row)
        visits = np.asarray(dense.visits[:, row])
        assert (visits[: made[row]] > 0).all()
        assert (visits[made[row] :] == 0).all()
    left, right = (search(game, roots, 50, tree=tree, solver=solver) for tree in (mixed, dense))
    np.testing.assert_array_equal(left.visits, right.visits)
    np.testing.assert_array_equal(left.value, right.value)
    np.testing.assert_array_equal(left.bounds, right.bounds)
