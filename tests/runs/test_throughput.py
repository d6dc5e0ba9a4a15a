"""Where the time of an iteration goes."""

import jax
import pytest
from small_run import SMALL

from azjax.games.registry import make
from azjax.runs import Throughput, measure_throughput, throughput
from azjax.training import init, make_iteration

GAME = make("connect2")


@pytest.fixture(scope="module")
def state():
    first = jax.jit(lambda: init(GAME, SMALL, 0, SMALL.hyper))()
    return jax.jit(make_iteration(GAME, SMALL))(first, SMALL.hyper)[0]


@pytest.mark.slow
def test_the_parts_of_an_iteration_take_time_and_their_shares_sum_to_one(state):
    measured = measure_throughput(GAME, SMALL, state)
    assert measured.network > 0
    assert measured.optimizer_steps > 0
    assert sum(measured.shares.values()) == pytest.approx(1)
    assert list(measured.shares) == ["network", "tree and rules", "optimizer steps"]


@pytest.mark.slow
def test_tree_and_rules_are_self_play_without_the_network(state, monkeypatch):
    seconds = iter([5.0, 2.0, 3.0])  # self-play, the network alone, optimizer steps
    monkeypatch.setattr(throughput, "median_seconds", lambda run: next(seconds))
    assert measure_throughput(GAME, SMALL, state) == Throughput(2.0, 3.0, 3.0)
    seconds = iter([5.0, 5.5, 3.0])  # a noisy machine
    assert measure_throughput(GAME, SMALL, state) == Throughput(5.0, 0.0, 3.0)
