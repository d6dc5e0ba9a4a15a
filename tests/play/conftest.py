"""The page of tic-tac-toe, and a visitor."""

import queue

import jax
import numpy as np
import pytest
from starlette.testclient import TestClient

from azjax.evaluation import optimal_player, random_player, solve
from azjax.games.registry import make
from azjax.play.search_pool import SearchPool
from azjax.play.server import make_app
from azjax.play.session import PlaySession
from azjax.search import AlphaZero, evaluators

GAME = make("tictactoe")
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="package")
def session():
    pool = SearchPool(AlphaZero(GAME, evaluators.rollout(GAME), 16), max_simulations=64)
    pool.start()
    updates = queue.Queue()
    pool.search(jax.tree.map(np.asarray, GAME.init(jax.random.key(0))), updates.put, num_simulations=16)
    assert updates.get(timeout=300).is_last  # or else it is the error that ended the pool
    exact = optimal_player(solve(GAME))
    yield PlaySession(GAME, "agent", pool, {"easy": random_player(GAME)}, exact, facts={"strength": "great"})
    pool.close()


@pytest.fixture
def client(session):
    with TestClient(make_app(session), base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client
