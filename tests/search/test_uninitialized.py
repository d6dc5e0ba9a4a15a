"""No search reads a row of its tree before it is written: JAX's CPU clears new memory, GPUs leave there what was."""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_policy import NAMES, policies, search_twice
from results import without_tree

import azjax
from azjax.search import evaluators
from azjax.search.search import new_tree
from benchmarks.rules.table_game import TableGame, node_of

TABLE = TableGame(seed=4, width=64, depth=8, actions=24, slots=10)
BRANDUB = azjax.make("brandub")


def garbage(shape, dtype):
    """What no search can use: NaN, or an index far out of range."""
    dtype = jnp.dtype(dtype)
    return jnp.full(shape, jnp.nan if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max - 12_345, dtype)


def has_nan(tree):
    return any(np.isnan(leaf).any() for leaf in jax.tree.leaves(tree) if leaf.dtype == jnp.float32)


def cases():
    """Every policy and rule, on a game of tables with both stores and on one whose positions come back."""
    in_ci = {("uct", "blocked")}
    for name in NAMES:
        for store, slots in (("dense", 10_000), ("blocked", 0)):
            marks = [] if (name, store) in in_ci else [pytest.mark.slow]
            yield pytest.param(name, TABLE, slots, id=f"{name}-{store}", marks=marks)
        yield pytest.param(name, BRANDUB, 10_000, id=f"{name}-brandub", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "game", "max_dense_slots"), list(cases()))
def test_what_is_in_new_memory_changes_nothing(monkeypatch, name, game, max_dense_slots):
    if game is TABLE:
        evaluator, params = evaluators.table(node_of), (game.tables.prior_logits, game.tables.values)
        states = game.state_at(np.arange(16))
    else:
        evaluator, params = evaluators.random(game), None
        states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 4))
    policy = policies(game, evaluator)[name]
    monkeypatch.setattr(sys.modules[new_tree.__module__], "MAX_DENSE_SLOTS", max_dense_slots)
    # Equal policies share a compilation.
    clean = search_twice(dataclasses.replace(policy, max_nodes=120 + max_dense_slots // 1000), params, states)
    monkeypatch.setattr(jax.lax, "empty", garbage)
    dirty = search_twice(dataclasses.replace(policy, max_nodes=140 + max_dense_slots // 1000), params, states)
    assert has_nan(dirty[1].tree)
    clean, dirty = without_tree(clean), without_tree(dirty)
    jax.tree.map(np.testing.assert_array_equal, dirty, clean)
    assert not any(np.isnan(leaf).any() for leaf in jax.tree.leaves(dirty) if np.issubdtype(leaf.dtype, np.floating))
