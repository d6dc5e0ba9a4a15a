import dataclasses

import jax
import jax.numpy as jnp
import pytest
from small_run import SMALL

from azjax.evaluation import DeviceMatch
from azjax.games.registry import make
from azjax.training import ladder
from azjax.training.ladder import Ladder, ladder_cost, make_ladder

GAME = make("connect2")


@pytest.fixture
def climb(monkeypatch):
    """The ladder of networks that are numbers: one scores half a point plus the difference, in 98 games."""

    def match(game, one, other, **options):
        def play(ours, theirs, key):
            score = 0.5 + ours["strength"] - (0.0 if theirs is None else theirs["strength"])
            start = jax.vmap(GAME.init)(jax.random.split(key, 1))
            return DeviceMatch(start, jnp.zeros((1, 1), jnp.int32), 2 * score[None] - 1)

        return play

    monkeypatch.setattr(ladder, "make_device_match", match)
    config = dataclasses.replace(SMALL, ladder_every=1, ladder_games=98, ladder_opponents=("random", "uct:3"))
    return make_ladder(GAME, config)


def _network(strength):
    return {"strength": jnp.float32(strength)}


def test_a_rung_is_climbed_with_55_points_of_a_hundred(climb):
    on = Ladder.init(_network(0))
    rungs = []
    for strength in (0.04, 0.0625, 0.1, 0.375):
        on, metrics, _ = climb(on, _network(strength), jax.random.key(0))
        rungs.append((float(metrics["ladder_score"]), float(on.variables["strength"]), int(on.rung)))
    assert rungs == [
        (pytest.approx(0.54), 0.0, 0),
        (0.5625, 0.0625, 1),
        (pytest.approx(0.5375), 0.0625, 1),
        (0.8125, 0.375, 2),
    ]


def test_ratings_are_elo_points_that_add_up(climb):
    on, metrics, _ = climb(Ladder.init(_network(0)), _network(0.25), jax.random.key(0))
    # (98 * 0.75 + 0.5) / 99 = 74 / 99: 400 log10(74 / 25) = 188.52
    assert float(metrics["ladder_rating"]) == pytest.approx(188.52, abs=0.01)
    on, metrics, _ = climb(on, _network(0.25), jax.random.key(0))
    assert float(metrics["ladder_rating"]) == pytest.approx(188.52, abs=0.01)  # equal to the one on the rung
    assert (float(on.rating), int(on.rung)) == (pytest.approx(188.52, abs=0.01), 1)
    _, metrics, _ = climb(on, _network(0.75), jax.random.key(0))
    # A clean sweep: (98 + 0.5) / 99, 917.79 points more.
    assert float(metrics["ladder_rating"]) == pytest.approx(188.52 + 917.79, abs=0.02)


def test_scores_against_the_fixed_opponents_have_their_names(climb):
    _, metrics, _ = climb(Ladder.init(_network(0)), _network(0.25), jax.random.key(0))
    assert {name: float(value) for name, value in metrics.items() if name.startswith("score")} == {
        "score_random": 0.75,
        "score_uct:3": 0.75,
    }


@pytest.mark.slow
def test_an_untrained_network_is_as_strong_as_random_play_and_a_search_is_stronger():
    """Its logits are all equal. The first player can win Connect-2, and uct:64 does."""
    config = dataclasses.replace(SMALL, ladder_every=1, ladder_games=400, ladder_opponents=("random", "uct:64"))
    variables = config.make_network(GAME).init(jax.random.key(0), GAME)
    variables = jax.tree.map(jnp.zeros_like, variables)
    _, metrics, _ = jax.jit(make_ladder(GAME, config))(Ladder.init(variables), variables, jax.random.key(1))
    assert float(metrics["ladder_score"]) == pytest.approx(0.5, abs=0.1)
    assert float(metrics["score_random"]) == pytest.approx(0.5, abs=0.1)
    assert float(metrics["score_uct:64"]) < 0.25


def test_the_cost_counts_each_move_of_either_side():
    config = dataclasses.replace(SMALL, ladder_every=1, ladder_games=10, ladder_opponents=("random", "uct:100"))
    # 4 plies: 2 moves of a side; the network in three matches, its opponent, random, and 100 simulations.
    assert ladder_cost(GAME, config) == 10 * 2 * (3 + 1 + 1 + 100)
    # Matches are played to the end of the game.
    assert ladder_cost(GAME, dataclasses.replace(config, truncate_at_ply=2)) == ladder_cost(GAME, config)
