"""The two stores of edges mean the same: every search makes the same trees with both, to the bit (see `FOLDING`)."""

import dataclasses
import sys

import jax
import numpy as np
import pytest
from every_policy import NAMES, policies, search_twice

import azjax
from azjax.search import evaluators
from azjax.search.search import new_tree
from benchmarks.rules.table_game import TableGame, node_of

# The sum of floats over the edges of a node depends on their order, which is that of the store: scores that are equal
# but for a rounding may then differ, and a value that is such a sum is handed up.
FOLDING = ("relative_entropy", "gumbel, 4 leaves")
TABLE_GAMES = [
    TableGame(seed=1, width=128, depth=8, actions=11, slots=6),
    TableGame(seed=4, width=64, depth=8, actions=100, slots=40),
]
GAMES = [
    azjax.make(name, **options)
    for name, options in [
        ("tictactoe", {}),
        ("connect2", {}),
        ("connect_four", {}),
        ("mnk", {"columns": 5, "rows": 5, "in_a_row": 4}),
        ("santorini", {"size": 3, "workers": 1}),
        ("santorini", {"size": 5, "workers": 2}),
        ("brandub", {}),
    ]
]


def assert_equal_with_both_stores(monkeypatch, policy, params, states, rtol=0.0):
    def searched(max_dense_slots):
        # A policy of its own for each store, since equal ones share a compilation.
        own = dataclasses.replace(policy, max_nodes=150 + max_dense_slots // 1000)
        monkeypatch.setattr(sys.modules[new_tree.__module__], "MAX_DENSE_SLOTS", max_dense_slots)
        return search_twice(own, params, states)

    dense, blocked = searched(10_000), searched(0)
    for left, right in zip(dense, blocked, strict=True):
        assert type(left.tree.edges).__name__ == "DenseEdges"
        assert type(right.tree.edges).__name__ == "BlockedEdges"
        made = np.asarray(left.tree.visits[:150]) > 0
        for of_left, of_right in zip(jax.tree.leaves(left.tree.nodes), jax.tree.leaves(right.tree.nodes), strict=True):
            np.testing.assert_allclose(of_left[:150][made], of_right[:150][made], rtol=rtol, atol=rtol)
        for name in ("action", "policy", "value", "visits", "q_values", "bounds"):
            np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=rtol, atol=rtol)


def cases():
    """Every policy and rule on a game of each kind, one in CI; and on every game, with evaluators in turn."""
    in_ci = {("uct", 0)}
    for turn, name in enumerate(NAMES):
        for kind, game in enumerate(TABLE_GAMES):
            marks = [] if (name, kind) in in_ci else [pytest.mark.slow]
            yield pytest.param(name, game, evaluators.table(node_of), id=f"{name}-{game.slots} slots", marks=marks)
        for number, game in enumerate(GAMES):
            evaluator = (evaluators.random, evaluators.uniform)[(turn + number) % 2]
            label = f"{name}-{game.name}-{evaluator.__name__}"
            yield pytest.param(name, game, evaluator(game), id=label, marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "game", "evaluator"), list(cases()))
def test_trees_are_equal(monkeypatch, name, game, evaluator):
    policy, params, rtol = policies(game, evaluator)[name], None, 0.0
    if isinstance(game, TableGame):
        params, states = (game.tables.prior_logits, game.tables.values), game.state_at(np.arange(16))
    else:
        states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 8))
    if name in FOLDING:
        policy, rtol = dataclasses.replace(policy, num_simulations=16), 1e-5
    assert_equal_with_both_stores(monkeypatch, policy, params, states, rtol)
