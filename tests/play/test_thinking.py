"""Searches side by side find what each would find alone."""

import queue
import threading

import jax
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.play.thinking import SEATS, Thinker
from azjax.search import alphazero_policy, evaluators

GAME = make("connect_four")
EVALUATOR = evaluators.uniform(GAME)
# A search of these is never proven before its end.
POSITIONS = ["6", "4", "44", "4453", "43443545", "12", "71", "3333", "2627", "5", "55", "1717"]


@pytest.fixture(scope="module")
def thinker():
    found = Thinker(GAME, EVALUATOR, max_simulations=192)
    found.start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def alone():
    """Visits of each number of simulations, of searches by themselves; one compilation does for all."""
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *map(GAME.from_text, POSITIONS))

    def visits(text, num_simulations):
        result, options = None, {"game": GAME, "evaluator": EVALUATOR, "num_simulations": 16, "max_nodes": 200}
        for _ in range(num_simulations // 16):
            tree = None if result is None else result.tree
            result = alphazero_policy(None, jax.random.key(0), states, solver=True, tree=tree, **options)
        return np.asarray(result.policy[POSITIONS.index(text)])

    return visits


def asked(thinker, text, num_simulations, **options):
    """A search, and the queue of its thoughts."""
    thoughts = queue.Queue()
    state = jax.tree.map(np.asarray, GAME.from_text(text))
    return thinker.search(state, thoughts.put, num_simulations=num_simulations, **options), thoughts


def last_of(thoughts):
    while not (thought := thoughts.get(timeout=60)).is_last:
        pass
    return thought


def test_one_search_is_the_policy_of_as_many_simulations(thinker, alone):
    for text in POSITIONS[:3]:
        thought = last_of(asked(thinker, text, 64)[1])
        assert thought.num_simulations == 64
        np.testing.assert_allclose(thought.policy, alone(text, 64), atol=1e-6)
        assert thought.action == np.argmax(thought.policy)


def test_searches_that_come_and_go_find_what_each_finds_alone(thinker, alone):
    """More than there are seats, of different lengths: seats are taken again in the middle of others."""
    lengths = [192, 16, 80, 192, 48, 32, 160, 96, 192, 64, 112, 176]
    searches = [
        (text, length, asked(thinker, text, length)[1]) for text, length in zip(POSITIONS, lengths, strict=True)
    ]
    assert len(searches) > SEATS
    for text, length, thoughts in searches:
        thought = last_of(thoughts)
        assert thought.num_simulations == length
        np.testing.assert_allclose(thought.policy, alone(text, length), atol=1e-6)


def test_a_search_goes_on_when_others_join_and_leave(alone):
    thinker = Thinker(GAME, EVALUATOR, max_simulations=192)
    joined, first = threading.Event(), []
    others = queue.Queue()

    def tell(thought):
        first.append(thought)
        if not joined.is_set():  # in the thread that thinks, so that it is at this very simulation
            joined.set()
            state = jax.tree.map(np.asarray, GAME.from_text("44"))
            thinker.search(state, others.put, num_simulations=32)

    thinker.start()
    state = jax.tree.map(np.asarray, GAME.from_text("4"))
    thinker.search(state, tell, num_simulations=192)
    np.testing.assert_allclose(last_of(others).policy, alone("44", 32), atol=1e-6)
    while not first[-1].is_last:
        threading.Event().wait(0.01)
    thinker.close()
    assert [thought.num_simulations for thought in first] == sorted({thought.num_simulations for thought in first})
    np.testing.assert_allclose(first[-1].policy, alone("4", 192), atol=1e-6)


def test_a_search_that_nobody_waits_for_stops(thinker):
    search, thoughts = asked(thinker, "4", 192)
    search.cancel()
    assert last_of(asked(thinker, "44", 64)[1]).num_simulations == 64
    heard = []
    while not thoughts.empty():
        heard.append(thoughts.get())
    assert not any(thought.is_last for thought in heard)


def test_a_search_ends_when_its_time_is_up(thinker):
    thought = last_of(asked(thinker, "4", 192, seconds=1e-9)[1])
    assert thought.num_simulations == 16


def test_a_proven_position_is_thought_of_no_longer(thinker):
    thought = last_of(asked(thinker, "112233", 192)[1])
    assert thought.proven
    assert thought.value == 1
    assert thought.num_simulations < 192
    assert GAME.action_to_text(GAME.from_text("112233"), thought.action) == "4"


def test_numbers_out_of_range_are_refused(thinker):
    state = GAME.init(jax.random.key(0))
    with pytest.raises(ValueError, match=r"num_simulations must be 1\.\.192, got 193"):
        thinker.search(state, print, num_simulations=193)
    with pytest.raises(ValueError, match="seconds must be above 0, got 0"):
        thinker.search(state, print, num_simulations=16, seconds=0)
