"""A search with a budget is the same search, and ends when it may."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.core.errors import InputError
from azjax.search import AlphaZero, alphazero_policy, budget, evaluators, search_within

GAME = azjax.make("tictactoe")
KEY = jax.random.key(0)
OPTIONS = {"game": GAME, "evaluator": evaluators.uniform(GAME)}
POLICY = AlphaZero(GAME, evaluators.uniform(GAME), num_simulations=40)


def states(*texts):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(GAME.from_text, texts))


SOME = states("_________", "X___O____", "XX_OO____")


@pytest.mark.slow
def test_chunks_make_the_same_tree_as_one_search():
    once = alphazero_policy(None, KEY, SOME, num_simulations=120, **OPTIONS)
    within = search_within(POLICY, None, KEY, SOME, num_simulations=120, stop_early=False)
    np.testing.assert_array_equal(once.visits, within.visits)
    np.testing.assert_array_equal(once.value, within.value)


def test_each_state_may_have_its_own_key():
    keys = jax.random.split(KEY, 3)
    within = search_within(POLICY, None, keys, SOME, num_simulations=80, stop_early=False)
    assert within.visits.sum(axis=1).tolist() == [80, 80, 80]


def test_a_tree_is_continued():
    once = search_within(POLICY, None, KEY, SOME, num_simulations=80, max_nodes=200, stop_early=False)
    begun = dataclasses.replace(POLICY, max_nodes=200)(None, KEY, SOME)
    longer = search_within(POLICY, None, KEY, SOME, num_simulations=40, stop_early=False, tree=begun.tree)
    assert longer.tree.max_nodes == 200
    np.testing.assert_array_equal(longer.visits, once.visits)
    np.testing.assert_array_equal(longer.value, once.value)
    with pytest.raises(RuntimeError, match="deleted"):  # the longer search has its memory
        begun.tree.sums.block_until_ready()


@pytest.mark.usefixtures("types_unchecked")
def test_something_else_than_a_tree_is_refused():
    with pytest.raises(InputError, match="tree must be the `tree` of a SearchResult, got a int"):
        search_within(POLICY, None, KEY, SOME, num_simulations=40, tree=3)


def test_the_capacity_of_the_policy_is_kept():
    small = dataclasses.replace(POLICY, max_nodes=9)
    within = search_within(small, None, KEY, SOME, num_simulations=80, stop_early=False)
    assert within.tree.max_nodes == 9


def test_an_early_end_keeps_the_action_and_saves_simulations():
    won = states("XX_OO____")
    once = alphazero_policy(None, KEY, won, num_simulations=400, **OPTIONS)
    within = search_within(POLICY, None, KEY, won, num_simulations=400)
    assert within.action[0] == once.action[0] == 2
    assert within.visits.sum() < 400


def test_a_proven_root_ends_the_search():
    within = search_within(
        dataclasses.replace(POLICY, solver=True), None, KEY, states("XX_OO____"), num_simulations=4000
    )
    assert within.bounds[0].tolist() == [1, 1]
    assert within.visits.sum() <= 40


@pytest.mark.slow
def test_a_lead_does_not_end_a_search_that_may_still_prove_it_lost():
    policy = dataclasses.replace(POLICY, num_simulations=10, solver=True)
    leading = states("XX_OO____", "X___O____")  # the second is proven late
    within = search_within(policy, None, KEY, leading, num_simulations=100)
    whole = alphazero_policy(None, KEY, leading, num_simulations=100, solver=True, **OPTIONS)
    np.testing.assert_array_equal(within.action, whole.action)
    np.testing.assert_array_equal(within.visits[1], whole.visits[1])


def test_an_ended_game_ends_the_search():
    within = search_within(POLICY, None, KEY, states("XXXOO____"), num_simulations=4000)
    assert not within.visits.any()


@pytest.mark.parametrize(("seconds", "chunks"), [(0.01, 1), (1.9, 1), (2.0, 2), (3.5, 3), (4.0, 4)])
def test_no_simulations_begin_that_would_end_after_the_time(seconds, chunks, monkeypatch):
    """By a clock on which each chunk takes a second; compilation, which is other searches, is none of them."""
    monkeypatch.setattr(budget.time, "perf_counter", map(float, itertools.count()).__next__)
    within = search_within(POLICY, None, KEY, states("_________"), seconds=seconds, max_nodes=200, stop_early=False)
    assert within.visits.sum() == 40 * chunks


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({}, "needs a budget"),
        ({"seconds": 0.0}, "seconds must be above 0, got 0.0"),
        ({"seconds": float("inf")}, "seconds must be at most 1,000,000, got inf"),
        ({"num_simulations": 50}, "multiple of the policy's 40, at least once, got 50"),
        ({"num_simulations": 80.0}, "multiple of the policy's 40, at least once, got 80.0"),
        ({"seconds": "1"}, "seconds must be above 0, got '1'"),
        ({"num_simulations": 0}, "multiple of the policy's 40, at least once, got 0"),
    ],
)
@pytest.mark.usefixtures("types_unchecked")
def test_other_budgets_are_refused(budget, message):
    with pytest.raises(ValueError, match=message):
        search_within(POLICY, None, KEY, SOME, **budget)


@pytest.mark.usefixtures("types_unchecked")
def test_what_a_search_refuses_is_refused_with_a_time_too():
    with pytest.raises(InputError, match="states must be a batch of states of tictactoe, got a NoneType"):
        search_within(POLICY, None, KEY, None, seconds=1.0)
    with pytest.raises(InputError, match="key must be a key"):
        search_within(POLICY, None, "key", SOME, seconds=1.0)


def test_visits_beyond_those_that_are_counted_are_refused():
    policy = AlphaZero(GAME, evaluators.uniform(GAME), 1 << 22, max_nodes=64)
    states = jax.tree.map(lambda leaf: leaf[None], GAME.init(jax.random.key(0)))
    with pytest.raises(ValueError, match="num_simulations must be at most 16,777,216, got 25,165,824"):
        search_within(policy, None, jax.random.key(0), states, num_simulations=6 << 22)


def test_a_search_that_goes_on_takes_over_the_memory_of_its_tree():
    begun = POLICY(None, KEY, SOME)
    kept = POLICY(None, KEY, SOME, tree=begun.tree)
    donated = POLICY(None, KEY, SOME, tree=begun.tree, donate_tree=True)
    assert begun.tree.sums.is_deleted()
    assert not kept.tree.sums.is_deleted()
    np.testing.assert_array_equal(donated.visits, kept.visits)
    np.testing.assert_array_equal(donated.q_values, kept.q_values)
