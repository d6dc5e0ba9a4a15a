"""The study of Connect Four against best play, with a solver that the test decides."""

import sys
import types

import jax
import numpy as np
import pytest
from studies import load_study

import azjax
from azjax.evaluation import random_player

GAME = azjax.make("connect_four")
TOLD_UNTIL = 8  # moves


class Solver:
    """Says that the first player wins until 8 moves are made, and then that it loses; all columns are alike."""

    def __init__(self, opening_book=None):
        del opening_book

    def score_all_moves(self, position):
        heights = np.bincount(position, minlength=7)
        score = -3 if len(position) < TOLD_UNTIL else 2
        return {column: score for column in range(7) if heights[column] < 6}


@pytest.fixture
def study(monkeypatch):
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    monkeypatch.setitem(sys.modules, "bitbully", types.SimpleNamespace(BitBully=Solver, Board=list))
    for name in ("connect_four_positions", "connect_four_best_play"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield load_study("connect_four_best_play")
    sys.modules.pop("connect_four_positions", None)  # it has the solver of this test


def test_the_agent_moves_first_and_its_lost_wins_are_counted_by_ply(study):
    played = study.play(GAME, random_player(GAME), Solver(), games=16, seed=0)
    again = study.play(GAME, random_player(GAME), Solver(), games=16, seed=0)
    np.testing.assert_array_equal(played.points, again.points)
    # The solver is asked after 1, 3, 5, ... moves; after 9 the win is gone, by the move of ply 8.
    assert set(played.given_away.tolist()) <= {-1, 8}
    assert (played.given_away == 8).sum() > 8
    assert set(played.points.tolist()) <= {-1.0, 0.0, 1.0}
    counts = study.counts(played)
    assert counts["won"] + counts["drawn"] + counts["lost"] == 16
    assert counts["given_away"] == {"8": int((played.given_away == 8).sum())}


def test_the_reply_is_drawn_among_the_best(study):
    class Chooses(Solver):
        def score_all_moves(self, position):
            return {0: -2, 3: -1, 5: -1, 6: -4}

    rng = np.random.default_rng(0)
    replies = [study.best_reply(Chooses(), "4", rng) for _ in range(40)]
    assert {column for column, _ in replies} == {3, 5}
    assert all(wins for _, wins in replies)


def test_the_packaged_agent_plays_with_and_without_a_search(study):
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 1))
    for simulations in (0, 4):
        player = study.make_player(GAME, None, simulations)
        assert 0 <= int(study.act(player, jax.random.key(0), states)[0][0]) < 7
