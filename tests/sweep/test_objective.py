"""The objectives of a run."""

import jax
import pytest
import small_run

import azjax
from azjax.agents import load_player
from azjax.evaluation import exact_report, solve
from azjax.runs import train
from azjax.sweep import Elo, Mistakes, Score

GAME = azjax.make("connect2")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(GAME, small_run.SMALL, folder)
    return folder


@pytest.mark.parametrize("num_simulations", [0, 8])
def test_mistakes_equal_those_of_the_exact_report(run, num_simulations):
    options = {"num_simulations": num_simulations} if num_simulations else {"level": "medium"}
    report = exact_report(load_player(str(run), GAME, **options), solve(GAME), jax.random.key(0))
    assert Mistakes(num_simulations).prepare(GAME)(run, 0) == report.mistakes.count


def test_a_score_is_in_points_a_game(run):
    # With best play the first player wins, and each player moves first in half of the games.
    score = Score("optimal", games=4, opening_plies=0, num_simulations=64).prepare(GAME)
    assert score(run, 0) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("opponents", [("random", "optimal"), ("random",)])
def test_elo_is_above_that_of_the_first_opponent(run, opponents):
    rating = Elo(opponents, games=40, opening_plies=0, num_simulations=64).prepare(GAME)
    assert 50 < rating(run, 0) < 1000


def test_a_game_that_cannot_be_solved_has_no_mistakes_to_count():
    with pytest.raises(ValueError, match="brandub"):
        Mistakes().prepare(azjax.make("brandub"))
