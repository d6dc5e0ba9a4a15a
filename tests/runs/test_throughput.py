"""Where the time of an iteration goes."""

import jax
import pytest
from small_run import SMALL

from azjax.games.registry import make
from azjax.training import init, make_iteration, throughput
from azjax.runs import Throughput, measure_throughput

GAME = make("connect2")


@pytest.fixture(scope="module")
def state():
    begun = jax.jit(lambda: init(GAME, SMALL, 0, SMALL.hyper))()
    return jax.jit(make_iteration(GAME, SMALL))(begun, SMALL.hyper)[0]


def test_all_parts_of_an_iteration_take_time_and_make_the_whole(state):
    found = measure_throughput(GAME, SMALL, state)
    assert found.network > 0
    assert found.optimiser_steps > 0
    assert sum(found.shares.values()) == pytest.approx(1)
    assert list(found.shares) == ["network", "tree and rules", "optimiser steps"]


def test_what_self_play_takes_longer_than_its_network_is_the_tree_and_the_rules(state, monkeypatch):
    seconds = iter([5.0, 2.0, 3.0])  # self-play, the network alone, optimiser steps
    monkeypatch.setattr(throughput, "_seconds_of", lambda run: next(seconds))
    assert measure_throughput(GAME, SMALL, state) == Throughput(2.0, 3.0, 3.0)
    seconds = iter([5.0, 5.5, 3.0])  # a noisy machine
    assert measure_throughput(GAME, SMALL, state) == Throughput(5.0, 0.0, 3.0)
