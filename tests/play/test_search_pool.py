"""Searches that share a batch give the results of separate searches."""

import queue
import threading

import jax
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.play.search_pool import CAPACITY, SearchPool
from azjax.search import AlphaZero, alphazero_policy, evaluators

GAME = make("connect_four")
EVALUATOR = evaluators.uniform(GAME)
# No search of these is proven before its end.
POSITIONS = ["6", "4", "44", "4453", "43443545", "12", "71", "3333", "2627", "5", "55", "1717"]


@pytest.fixture(scope="module")
def pool():
    started = SearchPool(AlphaZero(GAME, EVALUATOR, 16), max_simulations=192)
    started.start()
    yield started
    started.close()


@pytest.fixture(scope="module")
def alone():
    """A function that gives the policy of a separate search; one compilation serves all positions."""
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *map(GAME.from_text, POSITIONS))

    options = {"game": GAME, "evaluator": EVALUATOR, "num_simulations": 16, "max_nodes": 200, "solver": True}
    results = [alphazero_policy(None, jax.random.key(0), states, **options)]

    def policy(text, num_simulations):
        while len(results) < num_simulations // 16:
            results.append(alphazero_policy(None, jax.random.key(0), states, tree=results[-1].tree, **options))
        return np.asarray(results[num_simulations // 16 - 1].policy[POSITIONS.index(text)])

    return policy


def request(pool, text, num_simulations, **options):
    """A requested search, and the queue of its updates."""
    updates = queue.Queue()
    state = jax.tree.map(np.asarray, GAME.from_text(text))
    return pool.search(state, updates.put, num_simulations=num_simulations, **options), updates


def last_of(updates):
    while not (update := updates.get(timeout=60)).is_last:
        pass
    return update


@pytest.mark.slow
def test_one_search_equals_the_policy_of_as_many_simulations(pool, alone):
    for text in POSITIONS[:3]:
        update = last_of(request(pool, text, 64)[1])
        assert update.num_simulations == 64
        np.testing.assert_allclose(update.policy, alone(text, 64), atol=1e-6)
        assert update.action == np.argmax(update.policy)


def test_concurrent_searches_of_different_lengths_equal_separate_searches(pool, alone):
    """There are more searches than rows, so rows are reused while other searches run."""
    lengths = [192, 16, 80, 192, 48, 32, 160, 96, 192, 64, 112, 176]
    searches = [(text, length, request(pool, text, length)[1]) for text, length in zip(POSITIONS, lengths, strict=True)]
    assert len(searches) > CAPACITY
    for text, length, updates in searches:
        update = last_of(updates)
        assert update.num_simulations == length
        np.testing.assert_allclose(update.policy, alone(text, length), atol=1e-6)


def test_a_search_continues_when_another_one_starts_and_ends(alone):
    pool = SearchPool(AlphaZero(GAME, EVALUATOR, 16), max_simulations=192)
    has_joined, first = threading.Event(), []
    others = queue.Queue()

    def report(update):
        first.append(update)
        if not has_joined.is_set():  # in the thread of the pool, so exactly between two chunks
            has_joined.set()
            state = jax.tree.map(np.asarray, GAME.from_text("44"))
            pool.search(state, others.put, num_simulations=32)

    pool.start()
    state = jax.tree.map(np.asarray, GAME.from_text("4"))
    pool.search(state, report, num_simulations=192)
    np.testing.assert_allclose(last_of(others).policy, alone("44", 32), atol=1e-6)
    while not first[-1].is_last:
        threading.Event().wait(0.01)
    pool.close()
    assert [update.num_simulations for update in first] == sorted({update.num_simulations for update in first})
    np.testing.assert_allclose(first[-1].policy, alone("4", 192), atol=1e-6)


def test_a_cancelled_search_sends_no_last_update(pool):
    search, updates = request(pool, "4", 192)
    search.cancel()
    assert last_of(request(pool, "44", 64)[1]).num_simulations == 64
    received = []
    while not updates.empty():
        received.append(updates.get())
    assert not any(update.is_last for update in received)


@pytest.mark.slow
def test_a_search_ends_when_its_time_is_up(pool):
    update = last_of(request(pool, "4", 192, seconds=1e-9)[1])
    assert update.num_simulations == 16


def test_a_proven_position_is_update_of_no_longer(pool):
    update = last_of(request(pool, "112233", 192)[1])
    assert update.is_proven
    assert update.value == 1
    assert update.num_simulations < 192
    assert GAME.action_to_text(GAME.from_text("112233"), update.action) == "4"


def test_numbers_out_of_range_are_refused(pool):
    state = GAME.init(jax.random.key(0))
    with pytest.raises(ValueError, match=r"num_simulations must be 1\.\.192, got 193"):
        pool.search(state, print, num_simulations=193)
    with pytest.raises(ValueError, match="seconds must be above 0, got 0"):
        pool.search(state, print, num_simulations=16, seconds=0.0)


def failing_evaluator(params, key, states):
    raise MemoryError("no room for the trees")


def test_searches_learn_why_the_pool_cannot_compile():
    """Those that wait already, and later ones."""
    pool = SearchPool(AlphaZero(GAME, failing_evaluator, 16), max_simulations=192)
    (_, early), threads = request(pool, "4", 16), threading.active_count()
    pool.start()
    assert str(early.get(timeout=60)) == "no room for the trees"
    assert str(request(pool, "44", 16)[1].get(timeout=60)) == "no room for the trees"
    assert not pool.is_compiled
    pool.close()
    assert threading.active_count() == threads


@pytest.mark.slow
def test_a_search_that_runs_learns_why_the_pool_ended(monkeypatch):
    pool = SearchPool(AlphaZero(GAME, EVALUATOR, 16), max_simulations=192)
    monkeypatch.setattr(pool, "_report", lambda rows, result: 1 / 0)
    pool.start()
    assert isinstance(request(pool, "4", 192)[1].get(timeout=60), ZeroDivisionError)
    pool.close()
