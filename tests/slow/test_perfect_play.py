import jax
import pytest

import azjax
from azjax.evaluation import exact_report, optimal_player, play_match, random_player, solve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tictactoe"
    azjax.train(azjax.make("tictactoe"), azjax.preset("tictactoe"), folder)
    return str(folder)


@pytest.fixture(scope="module")
def solution():
    return solve(azjax.make("tictactoe"))


def test_the_network_with_64_simulations_makes_no_mistake_in_all_4520_positions(run, solution):
    report = exact_report(azjax.load_player(run), solution, jax.random.key(0))
    assert (report.mistakes.states, report.mistakes.count) == (4520, 0)


def test_the_network_alone_makes_mistakes_in_under_1_percent_and_none_in_its_own_games(run, solution):
    report = exact_report(azjax.load_player(run, level="medium"), solution, jax.random.key(0))
    assert report.mistakes.count <= 45
    assert report.mistakes.own_count == 0


@pytest.mark.parametrize("opponent", ["random", "optimal"])
def test_the_agent_loses_none_of_10000_games(run, solution, opponent):
    game = azjax.make("tictactoe")
    other = random_player(game) if opponent == "random" else optimal_player(solution)
    result = play_match(game, azjax.load_player(run), other, 10_000, jax.random.key(1), batch_size=1024)
    assert result.games == 10_000
    assert result.losses == 0
